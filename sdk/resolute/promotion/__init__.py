"""Moving a trial to another cluster: its history, its checkpoint, and an experiment that goes on there.

`history` records metrics and lines for sending, `checkpoint_copy` copies a checkpoint and compares every
byte, `promote` does all of it in steps that can be repeated.
"""
