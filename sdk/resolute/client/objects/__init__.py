"""The objects that scripts work with: experiments, trials, checkpoints, models, workspaces and users.

Each with its operations, and what several of them share: the ranking of checkpoints and a metric watched
live.
"""
