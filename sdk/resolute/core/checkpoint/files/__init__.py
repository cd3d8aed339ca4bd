"""The files of one checkpoint.

The manifest with sizes and digests, the record that is kept beside files where no registry does, hashing
while copying, ranges of large files, reuse of files that the store already has, and progress in the log.
"""
