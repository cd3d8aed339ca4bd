"""Runs that the cluster does not execute: their experiments and trials are recorded and shown.

Nothing is scheduled for them, and those whose heartbeats stop count as lost.
"""
