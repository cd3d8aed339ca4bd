"""What the registry keeps, as values and their rules.

Checkpoints, files, manifests, metadata, models, and which paths and digests are valid. Nothing here reads a
database or a store.
"""
