"""The addresses of a cluster of one process: its port, HTTP, and access from other machines."""
