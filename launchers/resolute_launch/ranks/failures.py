"""Reports why a run failed: the last lines of the rank that failed first."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.run.directory import LATEST_TIME, RunDirectory
from resolute.contracts.run.external_resources import remove
from resolute.contracts.spool.format import Line, Stdtype

KEPT_LINES = 40
"""How many last lines of each rank are kept."""
_KEPT_RANKS = 1024
_LONGEST = 16_000
_RANK = re.compile(rb"\[rank=(\d+)\] ?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFailure:
    """A rank's process that did not end well, as ``wrap_rank`` saw it."""

    rank: int
    """Rank."""
    exit_code: int
    """Its exit code; 128 + n when signal n ended it."""
    time: float
    """Unix time of its end."""
    said: str = ""
    """Its last lines on standard error."""
    attempt: int = 0
    """How often its launcher had started the ranks again before."""


def record_rank_failure(run: RunDirectory, failure: RankFailure) -> None:
    """Records that a rank failed, so that the supervisor can find the first one."""
    folder = _folder(run)
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = replace(failure, said=failure.said[-_LONGEST:])
    write_json(folder / f"rank{failure.rank}.json", asdict(kept))


def clear_rank_failures(run: RunDirectory) -> None:
    """Removes what was left of an earlier launch of the same run, or of one that came through after all."""
    remove(_folder(run))


def first_rank_failure(run: RunDirectory) -> RankFailure | None:
    """Returns the rank that failed first in the latest attempt, if any failure was recorded."""
    read = map(_read, _folder(run).glob("rank*.json"))
    failures = [failure for failure in read if failure is not None]
    return min(failures, key=lambda failure: (-failure.attempt, failure.time), default=None)


def _read(path: Path) -> RankFailure | None:
    """Returns a recorded failure; None for what is none, as scripts can write to the directory."""
    try:
        found = RankFailure(**(read_json(path) or {}))
        failure = RankFailure(
            rank=int(found.rank),
            exit_code=int(found.exit_code),
            time=float(found.time),
            said=str(found.said),
            attempt=int(found.attempt),
        )
    except (OSError, OverflowError, TypeError, ValueError):
        return None
    return failure if 0 <= failure.time <= LATEST_TIME else None


def _folder(run: RunDirectory) -> Path:
    return run.path / "failures"


class OutputTail:
    """The latest lines of each rank; of ranks that say nothing of themselves, together."""

    def __init__(self) -> None:
        self._errors: dict[int | None, deque[bytes]] = {}
        self._output: deque[bytes] = deque(maxlen=KEPT_LINES)

    def add(self, lines: Iterable[Line]) -> None:
        """Adds lines."""
        for line in lines:
            if line.stdtype is not Stdtype.STDERR:
                self._output.append(line.text)
                continue
            match = _RANK.match(line.text)
            rank = int(match[1]) if match else None
            kept = self._errors.get(rank)
            if kept is None:
                if len(self._errors) >= _KEPT_RANKS:
                    continue
                kept = self._errors[rank] = deque(maxlen=KEPT_LINES)
            kept.append(line.text[match.end() :] if match else line.text)

    def of(self, rank: int | None) -> str:
        """Returns what a rank said last on standard error; if nothing, what was said on standard output."""
        kept = self._errors.get(rank) or self._errors.get(None) or self._output
        text = b"\n".join(kept).decode("utf-8", "replace").strip()
        return text if len(text) <= _LONGEST else "…" + text[-_LONGEST:]


def describe(exit_code: int, words: OutputTail, first: RankFailure | None, *, memory_kills: int = 0) -> str:
    """Writes the message that says how a run failed.

    Args:
        exit_code: Exit code of the entrypoint.
        words: What was said last.
        first: The rank that failed first, if known.
        memory_kills: How many processes of the machine the kernel killed for lack of memory meanwhile.
    """
    if first is None:
        title, rank = f"the entrypoint {describe_exit(exit_code, memory_kills=memory_kills)}", None
    else:
        title, rank = (
            f"rank {first.rank} {describe_exit(first.exit_code, memory_kills=memory_kills)}",
            first.rank,
        )
    said = words.of(rank)
    return f"{title}\n{said}" if said else title


def describe_exit(exit_code: int, *, memory_kills: int = 0) -> str:
    """Says how a process ended: the end of a sentence about it."""
    if exit_code == 128 + signal.SIGKILL and memory_kills:
        return (
            "was killed for lack of memory: the kernel's out-of-memory killer ended a process of this "
            "machine during the run; use smaller batches, fewer workers of data loaders, or more memory"
        )
    if exit_code == 128 + signal.SIGKILL:
        return "was killed (SIGKILL); if nobody did that, the machine may have run out of memory"
    if exit_code > 128 and exit_code - 128 in set(signal.Signals):
        return f"was ended by {signal.Signals(exit_code - 128).name}"
    if exit_code == 127:
        return "could not be started: command not found (exit code 127)"
    return f"ended with exit code {exit_code}"
