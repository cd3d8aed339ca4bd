"""Retention of checkpoints after the end of an experiment.

Those that its policy does not keep are deleted at its end, or later if reports that decide about them were
still on their way.
"""
