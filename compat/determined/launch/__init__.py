"""Layers that start the workers of a distributed trial."""
