"""Bringing back what the cluster keeps: the files of checkpoints.

From the store or through the service, in parallel and resumable; their verification; and model definitions.
"""
