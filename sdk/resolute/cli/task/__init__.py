"""Tasks: commands and TensorBoards that run on the cluster, and trials, seen as tasks.

A command or a TensorBoard is an experiment of one trial, with a number, a config, a log and a place in the
queue. Lists of experiments leave it out.
"""
