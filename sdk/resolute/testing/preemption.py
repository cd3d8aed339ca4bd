"""Preempts a training script that runs off cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from resolute.core import preempt


class SimulatedPreemption:
    """A preemption signal that is set after some checks. Get it from ``simulate_preemption``.

    Attributes:
        checks: Number of times the script has read the signal.
        acknowledged: Whether the script has acknowledged the signal.

    Examples:
        >>> from resolute import core
        >>> from resolute.testing import simulate_preemption
        >>> with simulate_preemption(after_checks=1_000) as signal, core.init() as context:
        ...     before = context.preempt.should_preempt()
        ...     signal.request()
        ...     before, context.preempt.should_preempt()
        (False, True)
    """

    def __init__(self, after_checks: int) -> None:
        self._after_checks = after_checks
        self._requested = False
        self.checks = 0
        self.acknowledged = False

    @property
    def preempt(self) -> bool:
        """Whether the script must checkpoint and exit; each look counts."""
        self.checks += 1
        return self._requested or self.checks > self._after_checks

    def request(self) -> None:
        """Sends the signal now."""
        self._requested = True

    def withdraw(self) -> None:
        """Takes the signal back, as a trial sees it that continues."""
        self._requested = False

    def acknowledge(self) -> None:
        """Called by the Core API when the script promises to exit."""
        self.acknowledged = True


@contextlib.contextmanager
def simulate_preemption(*, after_checks: int = 0) -> Iterator[SimulatedPreemption]:
    """Makes ``should_preempt()`` of contexts that are started in the block return True.

    Args:
        after_checks: How many times it returns False before.

    Yields:
        The signal.

    Examples:
        >>> from resolute import core
        >>> from resolute.testing import simulate_preemption
        >>> def train():
        ...     with core.init() as context:
        ...         return next(step for step in range(1, 100) if context.preempt.should_preempt())
        >>> with simulate_preemption(after_checks=3) as signal:
        ...     train(), signal.acknowledged
        (4, True)
    """
    signal = SimulatedPreemption(after_checks)
    with preempt.local_signal(signal):
        yield signal
