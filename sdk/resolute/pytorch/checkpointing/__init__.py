"""Checkpoints of a trial.

Saving and restoring, their contents and file layout (also of older releases), the random state of each
rank, the source code kept with them, sharded models, and loading a trial outside of training. The state of a
script's own generators and samplers is read in ``data``.
"""
