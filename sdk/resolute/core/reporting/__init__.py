"""Reports of a trial.

Metrics, status, progress, metadata and the reason of an early exit (`TrainContext`), where reports go
(`Reporter`, `TrialRecord`), and how a trial off cluster is recorded for `resolute sync`.
"""
