"""A process that has imported the modules of a supervisor, and is forked for each supervisor.

Imports take most of a supervisor's start time. `server` serves the requests of the engine.
"""
