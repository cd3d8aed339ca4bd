"""Runs that the cluster does not execute.

Their experiments and trials are recorded and shown, nothing is scheduled for them, and those whose
heartbeats stop count as lost.
"""
