"""The training itself.

``init`` and ``Trainer``, the training loop and its segments, training and validation of batches, reports of
metrics, the progress bar, and tests of a trial off cluster.
"""
