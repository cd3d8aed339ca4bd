"""Measures how long Lightning waits for its training batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resolute.contracts.clock import Clock
from resolute.pytorch.lightning.library import find_library

if TYPE_CHECKING:
    from lightning.pytorch.profilers import Profiler
else:
    Profiler = find_library().profilers.Profiler

_FETCH = ".train_dataloader_next"
"""How Lightning ends the name of that what fetches a batch."""


class DataWaitProfiler(Profiler):  # type: ignore[misc, unused-ignore]  # without Lightning it is Any
    """A profiler that calls another one, and measures how long batches are fetched.

    The hooks of callbacks are not enough: between two batches other callbacks run too, such as those that
    save.

    Args:
        inner: The trainer's own profiler.
        clock: Measures the time.
    """

    def __init__(self, inner: Profiler, *, clock: Clock) -> None:
        super().__init__()
        self.inner = inner
        self._clock = clock
        self._waited = self._began = 0.0

    def take_waited(self) -> float:
        """Returns the seconds since the last call."""
        waited, self._waited = self._waited, 0.0
        return waited

    def start(self, action_name: str) -> None:
        """Begins an action."""
        self.inner.start(action_name)
        if action_name.endswith(_FETCH):
            self._began = self._clock.monotonic()

    def stop(self, action_name: str) -> None:
        """Ends an action."""
        if action_name.endswith(_FETCH):
            self._waited += self._clock.monotonic() - self._began
        self.inner.stop(action_name)

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        """Sets up the trainer's own profiler."""
        self.inner.setup(stage, local_rank, log_dir)

    def teardown(self, stage: str | None) -> None:
        """Tears down the trainer's own profiler."""
        self.inner.teardown(stage)

    def summary(self) -> str:
        """Returns the summary of the trainer's own profiler."""
        return str(self.inner.summary())

    def describe(self) -> None:
        """Lets the trainer's own profiler log its summary."""
        self.inner.describe()
