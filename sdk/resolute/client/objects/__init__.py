"""The objects that scripts work with.

Experiments, trials, checkpoints, models, workspaces and users, each with its operations, and what several
of them share: the ranking of checkpoints and a metric watched live.
"""
