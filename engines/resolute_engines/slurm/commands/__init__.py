"""Slurm's commands: how they are run, here or over `ssh`, and what their output says."""
