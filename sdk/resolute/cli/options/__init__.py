"""What commands are given: the global options and the services that they lead to.

Identifiers of experiments, trials and checkpoints, and the options of everything that continues.
"""
