"""Clients of object stores: S3 and what speaks it, Google Cloud Storage, Azure Blob Storage.

One protocol (`client`), one module for each provider, the location of a bucket, rules for names, and the
factory that imports only the library that is needed. The registry of checkpoints and scripts off cluster use
the same clients; nothing here knows of checkpoints.
"""
