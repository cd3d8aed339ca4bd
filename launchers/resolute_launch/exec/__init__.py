"""What an entrypoint executes.

How the `entrypoint` of a config becomes a command, the harness of Trial classes, and the modules that stand
for those of `determined.exec`.
"""
