"""Processes around the process of one rank.

`wrap_rank` prefixes and redacts its output and records its failure. `environment_file` passes its environment
around a launcher. `pid_server` and `pid_client` end a command when one of its workers dies.
"""
