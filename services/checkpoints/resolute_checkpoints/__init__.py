"""The checkpoint registry.

Checkpoints in two phases, the stores that keep their files, models, retention and deletion.
"""
