"""Retention of checkpoints, while trials run and after the end of their experiment.

Those that its policy does not keep are deleted once others took their places, and at its end, or later if
reports that decide about them were still on their way.
"""
