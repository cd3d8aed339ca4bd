"""Arguments of commands.

It has the global options and the services that they select, identifiers of experiments, trials and
checkpoints, and the options of commands that continue something.
"""
