"""Starts, signals and ends processes.

It has child processes in sessions of their own, the shutdown sequence (SIGTERM, then SIGKILL), grace periods,
and the handlers of this process's signals.
"""
