"""What commands are given.

The global options and the services that they lead to, identifiers of experiments, trials and checkpoints,
and the options of everything that continues.
"""
