"""Crash-safe files on which reports and lines wait until a service has them for good.

A process appends to a file of its own, its *source*; the supervisor tails every source of its run directory
and is the only one who talks to the services. A position in a source is told by its sequence, so that a batch
sent twice is taken once.
"""
