"""Queries of metrics.

Series (also downsampled, or watched while they grow), whole reports, summaries, and the best validation;
and the messages that answer.
"""
