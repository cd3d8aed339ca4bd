"""Checkpoints of a trial.

It saves and restores checkpoints, and defines their contents and file layout (also of older releases), the
random state of each rank, the source code kept with them, sharded models, and loading a trial outside of
training. ``data`` reads the state of a script's own generators and samplers.
"""
