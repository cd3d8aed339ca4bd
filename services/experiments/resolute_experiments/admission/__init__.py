"""Checks of a submission before it becomes an experiment.

Its config is completed and checked, its model definition is checked as an archive, and the workspace's
quotas for experiments and checkpoint storage are applied.
"""
