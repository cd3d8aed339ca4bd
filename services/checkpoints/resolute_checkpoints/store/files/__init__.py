"""Stored files: the checkpoints that share them, unfinished uploads, and files to remove."""
