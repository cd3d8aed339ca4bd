"""Launches of runs that were placed."""
