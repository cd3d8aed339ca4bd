"""Translates a checked config into the contracts of others: the searcher's spec.

The storage of the checkpoints service (without secrets), and what a supervisor needs to launch its part of
a run.
"""
