"""Helpers for tests of training scripts without a cluster."""

from resolute.testing.preemption import SimulatedPreemption, simulate_preemption

__all__ = ["SimulatedPreemption", "simulate_preemption"]
