"""Metrics in memory.

How the values of batches become the metrics of a training interval or of a validation, over batches and
ranks, and the reducers that a trial may register.
"""
