"""Warm starts: a parked process that has imported what the runs of an experiment import, forked for each run.

The first supervisor of an experiment on a slot starts the parked process; supervisors ask it for forks over a
socket. A fork looks to its script like a new interpreter, or becomes the cold start by ``exec``.
"""
