"""Runs a trial again without its cluster and compares the results.

`recipe` reads everything that determined the trial, `directory` writes it down, `running` runs it,
`comparison` compares checkpoints, whose weights `weights` reads.
"""
