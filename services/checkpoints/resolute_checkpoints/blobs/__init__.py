"""Where the bytes of checkpoints lie: one protocol, the store in a directory.

The choice of a store by its settings, and the examination that tries a store out.
"""
