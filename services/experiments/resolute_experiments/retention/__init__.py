"""Which checkpoints are kept when an experiment has ended.

Those that its policy does not keep are deleted at its end, or later if reports that decide about them were
still on their way.
"""
