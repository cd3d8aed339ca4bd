"""The port of HTTP: its socket, its connections, and the server on it."""
