"""The stores of checkpoint files.

It has one protocol, the store in a directory and that in a bucket, the choice of a store by its settings, and
the examination that tests a store.
"""
