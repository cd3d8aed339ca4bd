"""The training itself.

It has ``init`` and ``Trainer``, the training loop and its segments, training and validation of batches,
reports of metrics, the progress bar, warnings of state that a pause loses, and tests of a trial off cluster.
"""
