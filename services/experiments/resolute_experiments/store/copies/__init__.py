"""Copies of data of the metrics service, for decisions that cannot wait for that service."""
