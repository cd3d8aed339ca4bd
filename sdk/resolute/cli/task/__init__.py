"""Tasks: commands and TensorBoard, which run on the cluster beside its searches; and trials, seen as tasks.

A command, or a TensorBoard, is an experiment of one trial: it has a number, a config, a log and a place in
the queue as every other one. Only lists of experiments leave it out.
"""
