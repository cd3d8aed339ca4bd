"""Bringing back what the cluster keeps.

The files of checkpoints, from the store or through the service, in parallel and resumable; their
verification; and model definitions.
"""
