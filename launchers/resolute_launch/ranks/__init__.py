"""Processes around the process of one rank.

`wrap_rank`, which prefixes and redacts its output and records its failure, the file that carries its
environment past a launcher, and `pid_server` with `pid_client`, which end a command when one of its workers
dies.
"""
