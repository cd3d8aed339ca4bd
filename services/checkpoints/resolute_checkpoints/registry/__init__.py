"""What callers do with checkpoints and models.

Begin, upload, commit, seal and list, register versions, reuse files that were sent before, and download.
"""
