"""The objects that scripts work with.

It has experiments, trials, checkpoints, models, workspaces and users, each with its operations, and shared
parts: the ranking of checkpoints, and a metric that is watched live.
"""
