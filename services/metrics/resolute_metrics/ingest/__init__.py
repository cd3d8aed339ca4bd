"""Storing a batch of reports exactly once: parsing, checks of names, conflicts, and writing."""
