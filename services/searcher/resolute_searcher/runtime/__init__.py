"""Running searches in a server.

The searches in memory, the index of their trials, the topics of their changes, the poller for what other
replicas write, snapshots, suggestions by Optuna, and the processes that long calculations run in.
"""
