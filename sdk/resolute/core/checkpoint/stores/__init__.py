"""Where the files of checkpoints are stored.

One protocol and one module a kind of store: a directory, a bucket by presigned URLs, an object store by own
credentials, and a cache in front of another store.
"""
