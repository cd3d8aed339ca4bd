"""Starts, signals and ends processes.

Child processes in sessions of their own, the shutdown sequence (SIGTERM, then SIGKILL), grace periods, and
the handlers of this process's own signals.
"""
