"""The lifecycle of an experiment.

The controller drives one live experiment: it follows the actions of its search, processes the ends of its
runs, delivers the outbox, and ends or deletes the experiment. `commands` has users' commands (pause,
activate, cancel, kill, archive, delete), each as one transaction.
"""
