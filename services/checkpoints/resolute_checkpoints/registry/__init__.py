"""What callers do with checkpoints and models: begin, upload, commit, seal and list.

Register versions, reuse files that were sent before, and download.
"""
