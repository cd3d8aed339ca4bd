"""Copies of what the metrics service knows, for decisions that may not wait for it."""
