"""Clients of object stores: S3 and what speaks it, Google Cloud Storage, Azure Blob Storage.

One protocol (`bucket`), one module for each provider, how a process reaches a store (`access`), the errors of
all of them, and rules for names. The registry of checkpoints and scripts off cluster use the same clients.
`factory` imports only the library that is needed. Nothing here knows of checkpoints.
"""
