"""Where the bytes of checkpoints lie.

One protocol, the store in a directory, the choice of a store by its settings, and the examination that
tries a store out.
"""
