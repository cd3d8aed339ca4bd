"""Retention of checkpoints, while trials run and after the end of their experiment.

A checkpoint that the policy does not keep is deleted once others have replaced it, and otherwise at the end
of the experiment, or later if reports that decide about it have not arrived yet.
"""
