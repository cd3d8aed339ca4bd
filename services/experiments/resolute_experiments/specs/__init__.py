"""Translates a checked config into the contracts of other services.

The searcher's spec, the storage of the checkpoints service (without secrets), and what a supervisor needs
to launch its part of a run.
"""
