"""The checkpoint registry.

It registers checkpoints in two phases, opens the stores of their files, keeps models, and applies retention
and deletion.
"""
