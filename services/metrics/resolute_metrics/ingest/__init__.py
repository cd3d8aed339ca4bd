"""Stores batches of reports exactly once: parsing, checks of names, conflicts, and writing."""
