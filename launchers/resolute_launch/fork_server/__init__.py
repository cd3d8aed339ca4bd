"""A process that has imported what supervisors need, and is forked for each of them.

Importing takes most of the start of a supervisor. `server` serves the requests of the resource manager.
"""
