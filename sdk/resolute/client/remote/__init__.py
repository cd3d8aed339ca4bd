"""Typed calls of the services on plain values: one class for each service, all on one session."""
