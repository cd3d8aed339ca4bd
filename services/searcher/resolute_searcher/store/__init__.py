"""Reads and writes of the searcher's tables; each function is work for one transaction."""
