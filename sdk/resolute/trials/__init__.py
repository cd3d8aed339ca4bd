"""The shared part of the trials of all frameworks.

It has units of length (``Batch``, ``Epoch``), counters and intervals, the goals of a script, a config or a
search, the metric of a search, the decision of all ranks to stop after the same step, the training loop,
hyperparameters and config, and the import and the copies of a trial's code.
"""
