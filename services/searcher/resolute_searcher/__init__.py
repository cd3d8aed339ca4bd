"""The search service: it decides which trials an experiment runs, their hyperparameters and their lengths.

Its input is events, its output is actions. It does not depend on slots, processes or files.
"""
