"""Merges watches of several services into one stream."""
