"""Unmanaged runs, which the cluster does not execute.

Their experiments and trials are recorded and shown, but never scheduled. Runs whose heartbeats stop count as
lost.
"""
