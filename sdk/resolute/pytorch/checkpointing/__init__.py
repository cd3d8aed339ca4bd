"""Checkpoints of a trial.

Saving and restoring, their contents and file layout (also of older releases), random number generators and
other state of each rank, the source code kept with them, sharded models, and loading a trial outside of
training.
"""
