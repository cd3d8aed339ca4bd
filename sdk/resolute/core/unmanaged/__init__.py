"""Runs outside of the cluster that are live there: a process beside the script sends what it reports."""
