"""Warm starts: a parked process has the imports of an experiment's runs done, and is forked for each run.

The first supervisor of an experiment on a slot starts the parked process. Supervisors request forks over a
socket. To its script a fork looks like a new interpreter. If that is impossible, it starts cold by ``exec``.
"""
