"""Interrupts a training by Keras 3 on TensorFlow, resumes it, and compares it with one that never stopped."""

from __future__ import annotations

import sys
from pathlib import Path

import keras
from support.training.keras_models import run, same, weights
from support.training.trials import newest_checkpoint

from resolute.testing import simulate_preemption

directory = Path(sys.argv[1])
straight, reports = run(directory / "straight")
with simulate_preemption(after_checks=1) as signal:
    _, before = run(directory / "resumed")
assert signal.acknowledged
again, after = run(directory / "resumed", newest_checkpoint(directory / "resumed"))
assert same(weights(again), weights(straight))
assert before.reports + after.reports == reports.reports
print(f"{keras.backend.backend()}: the same")
