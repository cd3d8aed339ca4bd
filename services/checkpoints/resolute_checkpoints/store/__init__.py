"""The tables of the registry, their reads and their writes.

Every function works inside its caller's transaction.
"""
