"""Watches of several services as one stream."""
