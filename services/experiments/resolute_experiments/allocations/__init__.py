"""Runs and their containers on the engines.

`fleet` combines all engines. `engine_runs` has the runs of one engine: `launching` starts placed runs,
`watching` records the engine's reports, `enforcing` ends runs that must end, and `releases` removes settled
runs from the engine. `leases` has the leases of running allocations.
"""
