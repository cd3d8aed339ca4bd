"""Stores batches of lines exactly once: parsing and writing."""
