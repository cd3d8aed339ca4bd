"""Runs searches in a server.

It has the searches in memory, the index of their trials, the topics of their changes, the poller for changes
by other replicas, snapshots, suggestions by Optuna, and the processes for long calculations.
"""
