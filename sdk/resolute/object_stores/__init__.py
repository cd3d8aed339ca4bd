"""Clients of object stores (S3 and what speaks it, Google Cloud Storage.

Azure Blob Storage) with credentials of this process: one protocol (`client`), one module a provider, the
location of a bucket, and the factory that imports only the library that is needed. It knows nothing of
checkpoints.
"""
