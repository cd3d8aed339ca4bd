"""The operations of callers on checkpoints and models.

Callers begin, upload, commit, seal, list and download checkpoints, register versions, and reuse files that
were sent before.
"""
