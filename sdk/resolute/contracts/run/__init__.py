"""The run directory, which a trial's processes, their supervisor and the resource manager share.

Its layout, its lock, the launch order that a supervisor starts from, the record of how the run exited, and
the resources outside of it that are removed when the run has ended.
"""
