"""What can be asked of metrics: series (also downsampled, or watched while they grow), whole reports.

Summaries, and the best validation; and the messages that answer.
"""
