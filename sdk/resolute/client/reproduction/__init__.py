"""Running a trial again without its cluster, and comparing what comes out.

`recipe` reads what decided the trial, `directory` writes it down, `running` runs it, `comparison` compares
checkpoints, whose weights `weights` reads.
"""
