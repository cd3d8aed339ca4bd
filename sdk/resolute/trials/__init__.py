"""The shared part of trials of all frameworks.

Units of length (``Batch``, ``Epoch``), counters and intervals, the goals that a script, a config or a search
gives, the metric that a search decides by, how all ranks stop after the same step, the training loop,
hyperparameters and config, and the import and the copies of a trial's code.
"""
