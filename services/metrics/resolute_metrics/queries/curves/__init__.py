"""Reads the series of metrics that charts draw."""
