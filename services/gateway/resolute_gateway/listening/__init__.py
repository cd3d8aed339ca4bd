"""The HTTP port: its socket, its connections, and the server on it."""
