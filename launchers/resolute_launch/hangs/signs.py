"""Signs of life of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from resolute.contracts.clock import Clock
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.movement import MovementTotal
from resolute_launch.hangs.members import processor_seconds

_BUSY_SHARE = 0.05
"""Of a core: a process that uses less only waits."""


class Signs:
    """Checks for progress that scripts report; for scripts that report none, for output and processor time.

    Writes to spools do not count: the profiler's thread writes to them while its script hangs.

    Output and processor time also count from a script's status until its next step or report, because a
    status may announce work other than training.

    Args:
        run: The run directory.
        tree: The processes.
        output: Returns the amount of output so far.
        processor_interval: Seconds between two readings of processor time, which read all processes.
        clock: Measures the interval.
    """

    def __init__(
        self,
        run: RunDirectory,
        tree: ProcessTree,
        *,
        output: Callable[[], int],
        processor_interval: float,
        clock: Clock,
    ) -> None:
        self._run, self._tree, self._output, self._clock = run, tree, output, clock
        self._processor_interval = processor_interval
        self._movement, self._printed = MovementTotal(), 0
        self._talks = False
        self._status_counts = False
        self._used: Mapping[ProcessIdentity, float] | None = None
        self._used_at = 0.0

    def moved(self) -> bool:
        """Whether there was a sign of life since the last call."""
        movement, printed = MovementTotal.read(self._run.movement), self._output()
        reported, has_printed = movement.count != self._movement.count, printed != self._printed
        self._movement, self._printed = movement, printed
        if reported:
            self._talks = True
            self._status_counts = movement.busy
            self._used = None
            return True
        if self._talks and not self._status_counts:
            return False
        return has_printed or self._computes()

    def _computes(self) -> bool:
        now = self._clock.monotonic()
        if self._used is not None and now - self._used_at < self._processor_interval:
            return False
        before, elapsed = self._used, now - self._used_at
        self._used, self._used_at = processor_seconds(self._tree.members()), now
        if before is None:
            return False
        return any(
            used - before.get(identity, 0.0) > _BUSY_SHARE * elapsed for identity, used in self._used.items()
        )
