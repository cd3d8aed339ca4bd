"""Typed calls for the reports of trials: log lines, metrics and media."""
