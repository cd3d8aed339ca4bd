"""Checkpoints in buckets: the store, the service's settings, and the check of addresses.

The clients of S3, Google Cloud Storage and Azure are the SDK's: `resolute.contracts.object_stores`.
"""
