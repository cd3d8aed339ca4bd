"""The run directory, which a trial's processes, their supervisor and the engine share.

Its layout, its lock, the launch order for the supervisor, the exit record, and resources outside of the
directory that are removed when the run has ended.
"""
