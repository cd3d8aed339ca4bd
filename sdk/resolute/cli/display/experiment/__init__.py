"""The output of commands that wait for an experiment: its log, its progress and its outcome."""
