"""The search service: which trials of an experiment run, with which hyperparameters, and how long.

Events go in, actions come out; it knows nothing of slots, processes or files.
"""
