"""What a trial reports of itself: metrics, status, progress.

Metadata and the reason of an early exit (`TrainContext`), where reports go (`Reporter`, `TrialRecord`), and
how a trial off cluster is recorded for `resolute sync`.
"""
