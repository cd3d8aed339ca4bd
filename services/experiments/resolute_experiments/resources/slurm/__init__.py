"""Slurm, by its own commands.

`commands` runs them with deadlines and bounds, `jobs` reads what they print into values, and `client`
submits, finds and ends jobs by their names. The engine that runs trials through them is not there yet.
"""
