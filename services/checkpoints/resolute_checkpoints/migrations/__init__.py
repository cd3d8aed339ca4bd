"""The history of the checkpoint registry's tables."""
