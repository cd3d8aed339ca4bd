"""Storing a batch of lines exactly once: parsing and writing."""
