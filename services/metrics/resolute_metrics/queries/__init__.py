"""Queries of metrics.

They return series (also downsampled, or watched while they grow), whole reports, summaries, and best
validations.
"""
