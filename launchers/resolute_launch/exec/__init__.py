"""What an entrypoint executes: how the `entrypoint` of a config becomes a command.

The harness of Trial classes, and the modules that stand for those of `determined.exec`.
"""
