"""Transfers files between a machine and a store, for the client and the Core API.

It has HTTP by presigned URLs, retries, digests, the machine's cache of files, progress, and the error of a
full disk.
"""
