"""What the registry keeps, as values and their rules: checkpoints, files, manifests, metadata.

Models, and which paths and digests are valid. Nothing here reads a database or a store.
"""
