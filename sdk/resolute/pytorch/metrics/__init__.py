"""Metrics in memory.

It aggregates the values of batches, over batches and ranks, to the metrics of a training interval or of a
validation. It also has the reducers that a trial may register.
"""
