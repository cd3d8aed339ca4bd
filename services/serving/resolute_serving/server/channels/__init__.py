"""Channels between services: over connections, and within one process."""
