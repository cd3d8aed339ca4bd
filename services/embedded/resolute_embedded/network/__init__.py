"""The addresses of an embedded cluster: its port, HTTP, and access from other machines."""
