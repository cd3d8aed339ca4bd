"""The deletion of checkpoints.

It has the retention policy and its enforcement, deletion on request, the remover of files, and the collector
that works in the background.
"""
