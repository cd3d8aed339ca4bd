"""The search service: which trials of an experiment run, with which hyperparameters, and how long.

Its input is events, its output is actions; it does not depend on slots, processes or files.
"""
