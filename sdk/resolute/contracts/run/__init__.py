"""The run directory, which a trial's processes, their supervisor and the engine share.

It has the layout of the directory, its lock, the launch order for the supervisor, the exit record, and the
resources outside the directory that are removed when the run has ended.
"""
