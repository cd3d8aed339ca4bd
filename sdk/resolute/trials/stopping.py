"""Makes all ranks stop after the same step."""

from __future__ import annotations

from collections.abc import Callable

from resolute import core
from resolute.contracts.clock import Clock, SystemClock

_CHECK_INTERVAL_SECONDS = 1.0
"""How often ranks ask each other between boundaries."""
_MAX_STEPS_BETWEEN_CHECKS = 1000


class StopCoordinator:
    """Decides for all ranks whether to stop.

    Args:
        context: The Core API.
        requested: Returns whether the trial has asked to stop, on this rank.
        clock: Measures the duration of steps.
    """

    def __init__(
        self, context: core.Context, requested: Callable[[], bool], *, clock: Clock | None = None
    ) -> None:
        self._preempt = context.preempt
        self._distributed = context.distributed
        self._requested = requested
        self._clock = clock or SystemClock()
        self._last_check = (0, self._clock.monotonic())
        self._next_check = 0

    def at_boundary(self) -> bool:
        """Returns whether to stop at a boundary: preempted, or requested by a rank. Every rank calls it."""
        if self._preempt.should_preempt():
            return True
        return any(self._distributed.allgather(self._requested()))

    def at_step(self, step: int) -> bool:
        """Whether to stop after a step between boundaries: preempted. Every rank calls after every step.

        One rank alone looks every time. Several ask each other about once a second: each time the chief also
        says after which step they will ask next.
        """
        if self._distributed.size == 1:
            return self._preempt.should_preempt()
        if step < self._next_check:
            return False
        self._next_check = self._distributed.broadcast(self._choose_next(step))
        return self._preempt.should_preempt()

    def _choose_next(self, step: int) -> int:
        (before, then), now = self._last_check, self._clock.monotonic()
        self._last_check = (step, now)
        per_second = (step - before) / max(now - then, 1e-6)
        return step + max(1, min(int(per_second * _CHECK_INTERVAL_SECONDS), _MAX_STEPS_BETWEEN_CHECKS))
