"""Stores of checkpoint files.

One protocol, and one module for each kind of store: a directory, a bucket by presigned URLs, an object store
by own credentials, and a cache in front of another store.
"""
