"""Copies a trial to another cluster: its history, its checkpoint, and an experiment that continues there.

`preparation` looks up the trial. `attempt` records what is copied, before anything is sent. `history` records
metrics and lines as an unmanaged run. `checkpoint_copy` adds the checkpoint and compares every byte of the
copy. `continuation` submits the code again. `promote` does all of it in steps that can be repeated.
"""
