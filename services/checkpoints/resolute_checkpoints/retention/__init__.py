"""How checkpoints go: the retention policy and its enforcement, deletion on request.

The remover of files, and the collector that works in the background.
"""
