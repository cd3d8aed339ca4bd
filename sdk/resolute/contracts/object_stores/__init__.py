"""Clients of object stores: S3 and compatible stores, Google Cloud Storage, Azure Blob Storage.

It has one protocol (`bucket`), one module for each provider, the address and credentials of a store
(`access`), the errors of all providers, and rules for names. The registry of checkpoints and scripts off
cluster use the same clients. `factory` imports only the library that is needed. Nothing here depends on
checkpoints.
"""
