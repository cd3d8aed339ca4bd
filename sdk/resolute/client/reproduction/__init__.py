"""Runs a trial again without its cluster and compares the results.

`recipe` reads everything that determined the trial, `directory` writes it to a directory, and `running` runs
it. `comparison` compares the checkpoints, and `weights` reads their tensors.
"""
