"""The registry's values and their rules.

They are checkpoints, files, manifests, metadata, models, and the rules for valid paths and digests. Nothing
here reads a database or a store.
"""
