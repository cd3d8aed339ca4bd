"""Slurm's commands: running them, here or over `ssh`, and parsing their output."""
