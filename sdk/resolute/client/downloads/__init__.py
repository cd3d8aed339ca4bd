"""Downloads from the cluster.

Files of checkpoints, from the store or through the service, in parallel and resumable; their verification;
and model definitions.
"""
