"""The training itself.

``init`` and ``Trainer``, the training loop and its segments, training and validation of batches, reports of
metrics, the progress bar, warnings of what a pause forgets, and tests of a trial off cluster.
"""
