"""The search service: which trials run, with which hyperparameters, and how long."""
