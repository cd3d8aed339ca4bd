"""The checkpoint registry: checkpoints in two phases, the stores that keep their files, models.

Retention and deletion.
"""
