"""The lifecycle of an experiment.

The controller leads one live experiment: it follows the actions of its search, processes the ends of its
runs, delivers the outbox and ends or deletes it. `commands` are users' commands (pause, activate, cancel,
kill, archive, delete), each one transaction.
"""
