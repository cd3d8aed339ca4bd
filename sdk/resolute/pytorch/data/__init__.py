"""The data of a trial.

It has the ``DataLoader`` that a trial returns, and the samplers that shuffle, repeat, shard and skip. The
order of records is a function of seed and position, so a resumed trial sees the same batches as without the
interruption. It also saves the state of a script's own generators, samplers and loaders, as far as a
checkpoint can hold it, and leaves out the batches that the guard skips.
"""
