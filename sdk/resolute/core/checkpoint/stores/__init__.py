"""Stores of checkpoint files.

It has one protocol, and one module for each kind of store: a directory, a bucket by presigned URLs, an object
store by the script's credentials, and a cache in front of another store.
"""
