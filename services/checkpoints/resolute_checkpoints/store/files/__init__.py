"""Stored files: which checkpoints share them, what is still being uploaded, and what is to be removed."""
