"""Whether a submission becomes an experiment: its config is completed and checked.

Its model definition is checked as an archive, and the workspace's quotas for experiments and checkpoint
storage are applied.
"""
