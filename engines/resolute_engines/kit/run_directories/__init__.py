"""Runs by their directories, one for each container: what became of them, and what they left to be sent."""
