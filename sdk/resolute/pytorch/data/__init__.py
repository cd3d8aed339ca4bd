"""The data of a trial.

The ``DataLoader`` that a trial returns, the samplers that shuffle, repeat, shard and skip, and the order of
records as a function of seed and position, so that a resumed trial sees the same batches as without the
interruption. The generators, samplers and loaders that a script makes itself, as far as a checkpoint can keep
them; batches that the guard leaves out.
"""
