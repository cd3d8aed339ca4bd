"""The modules that an entrypoint executes.

They turn the `entrypoint` of a config into a command, run Trial classes, and replace the modules of
`determined.exec`.
"""
