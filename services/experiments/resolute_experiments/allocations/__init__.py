"""Runs and their containers at the engines.

`fleet` is all engines together, `engine_runs` the runs of one of them: `launching` starts what was placed,
`watching` writes down what engines report, `enforcing` ends what must end, and `releases` has the engine
forget what was settled. `leases` know which runs are alive.
"""
