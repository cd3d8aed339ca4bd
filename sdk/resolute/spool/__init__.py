"""Crash-safe files that hold reports and lines until a service has stored them.

Each process appends to its own file, its *source*; the supervisor reads every source of its run directory and
is the only process that calls the services. Records of a source have sequence numbers, so that a batch sent
twice is stored once.
"""
