"""Reports of a trial.

It has metrics, status, progress, metadata and the reason of an early exit (`TrainContext`), the receivers of
reports (`Reporter`, `TrialRecord`), and the recording of a trial off cluster for `resolute sync`.
"""
