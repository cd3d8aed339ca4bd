"""Reads and writes of the registry's tables; every function works inside its caller's transaction."""
