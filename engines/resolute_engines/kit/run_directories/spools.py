"""The unsent data in the spools of runs, and its age."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.remaining_output import lost_file
from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import FILE_HEADER, LOGS_SUFFIX, METRICS_SUFFIX


class RunSpools:
    """The files of reports and lines in one run directory.

    Args:
        run: The run directory.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def files(self) -> list[Path]:
        """All of them."""
        return [*self._reports(), *self._lines()]

    def undelivered(self) -> bool:
        """Whether reports or lines wait that have not arrived."""
        return self.reports_wait() or self.lines_wait()

    def reports_wait(self) -> bool:
        """Whether reports wait that have not arrived."""
        return any(waits(spool) for spool in self._reports())

    def lines_wait(self) -> bool:
        """Whether lines wait that have not arrived."""
        return lost_file(self._run.path).exists() or any(waits(spool) for spool in self._lines())

    def _reports(self) -> list[Path]:
        return list(self._run.spool.glob(f"*{METRICS_SUFFIX}"))

    def _lines(self) -> list[Path]:
        return list(self._run.spool.glob(f"*{LOGS_SUFFIX}"))


@dataclass(frozen=True)
class _Waiting:
    arrived: int
    since: float


class StalledSpools:
    """Records, from poll to poll, since when a spool has made no progress."""

    def __init__(self) -> None:
        self._waiting: dict[Path, _Waiting] = {}

    def look(self, spools: Iterable[Path], *, now: float) -> float:
        """Looks at spools.

        Args:
            spools: All spools there are.
            now: Monotonic seconds.

        Returns:
            For how long the one has waited that has waited longest, as far as looks can tell.
        """
        seen: dict[Path, _Waiting] = {}
        for spool in spools:
            arrived = AckFile.read_offset(spool)
            if not waits(spool):
                continue
            known = self._waiting.get(spool)
            seen[spool] = known if known is not None and known.arrived == arrived else _Waiting(arrived, now)
        self._waiting = seen
        return max((now - waiting.since for waiting in seen.values()), default=0.0)


def waits(spool: Path) -> bool:
    """Whether a spool holds more than has arrived; its header alone is nothing."""
    try:
        return spool.stat().st_size > max(AckFile.read_offset(spool), FILE_HEADER.size)
    except FileNotFoundError:
        return False
