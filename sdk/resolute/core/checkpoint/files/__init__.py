"""The files of one checkpoint.

It has the manifest with sizes and digests, the record for stores without a registry, hashing during copies,
ranges of large files, reuse of files that the store already has, and progress in the log.
"""
