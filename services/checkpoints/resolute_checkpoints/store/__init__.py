"""The tables of the registry, and the statements that read and write them.

Every function works inside its caller's transaction.
"""
