"""Translates a checked config into the contracts of other services.

It builds the searcher's spec, the storage of the checkpoints service (without secrets), and the launch spec
of a supervisor.
"""
