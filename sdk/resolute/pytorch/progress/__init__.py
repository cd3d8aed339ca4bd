"""How far training is and how far it goes: units of length (``Batch``, ``Epoch``).

Counters and intervals, the goals that a script, a config or a search gives, the metric that a search
decides by, and how all ranks stop after the same step.
"""
