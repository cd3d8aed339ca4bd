"""Runs and their containers at the engines.

`fleet` combines all engines, `engine_runs` has the runs of one engine: `launching` starts placed runs,
`watching` records the engines' reports, `enforcing` ends runs that must end, and `releases` removes settled
runs from the engine. `leases` know which runs are alive.
"""
