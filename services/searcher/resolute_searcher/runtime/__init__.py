"""Searches at work in a server: the searches in memory, the index of their trials.

Watchers and the poller for what other replicas write, snapshots, suggestions by Optuna, and the processes
that long calculations run in.
"""
