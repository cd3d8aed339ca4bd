"""How far training is and how far it goes.

Units of length (``Batch``, ``Epoch``), counters and intervals, the goals that a script, a config or a
search gives, the metric that a search decides by, and how all ranks stop after the same step.
"""
