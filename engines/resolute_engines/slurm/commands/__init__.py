"""Runs Slurm's commands, here or over `ssh`, and parses their output."""
