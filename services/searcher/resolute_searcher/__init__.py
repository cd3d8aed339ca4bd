"""The search service: it decides which trials of an experiment run, with which hyperparameters.

And how long. Events go in, actions come out; it knows nothing of slots, processes or files.
"""
