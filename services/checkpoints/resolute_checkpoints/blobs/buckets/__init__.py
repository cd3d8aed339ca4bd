"""Checkpoints in buckets: the store of checkpoints, the service's settings, and where connections may lead.

The clients of S3, Google Cloud Storage and Azure are the SDK's: `resolute.contracts.object_stores`.
"""
