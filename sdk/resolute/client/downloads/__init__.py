"""Downloads from the cluster.

It downloads files of checkpoints, from the store or through the service, in parallel and resumable, verifies
them, and downloads model definitions.
"""
