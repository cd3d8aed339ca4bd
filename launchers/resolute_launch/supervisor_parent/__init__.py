"""The process that has imported the modules of a supervisor, and of which each supervisor is a fork.

Imports take most of a supervisor's start time. `server` serves the requests of the engine.
"""
