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
from resolute_launch.ranks.causes import cause_of

KEPT_LINES = 40
"""How many last lines of each rank are kept."""
_KEPT_RANKS = 1024
_LONGEST = 16_000
_RANK = re.compile(rb"\[rank=(\d{1,9})\] ?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """The end of a rank's process, as ``wrap_rank`` saw it."""

    rank: int
    """Rank."""
    exit_code: int
    """Its exit code; 128 + n when signal n ended it."""
    time: float
    """Unix time of its end."""
    stderr_tail: str = ""
    """Its last lines on standard error."""
    attempt: int = 0
    """How often its launcher had started the ranks again before."""


def record_rank_end(run: RunDirectory, end: RankEnd) -> None:
    """Records how a rank ended, so that the supervisor can tell who failed first, and who left the others."""
    folder = _folder(run)
    folder.mkdir(mode=0o700, exist_ok=True)
    kept = replace(end, stderr_tail=end.stderr_tail[-_LONGEST:])
    write_json(folder / f"rank{end.rank}.json", asdict(kept))


def clear_rank_ends(run: RunDirectory) -> None:
    """Removes what was left of an earlier launch of the same run, or of one that came through after all."""
    remove(_folder(run))


def first_rank_failure(run: RunDirectory) -> RankEnd | None:
    """Returns the rank that failed first in the latest attempt, if any failure was recorded."""
    failures = [end for end in rank_ends(run) if end.exit_code]
    return min(failures, key=lambda failure: (-failure.attempt, failure.time), default=None)


def rank_ends(run: RunDirectory) -> list[RankEnd]:
    """Returns how ranks ended, in no order."""
    read = map(_read, _folder(run).glob("rank*.json"))
    return [end for end in read if end is not None]


def _read(path: Path) -> RankEnd | None:
    """Returns a recorded end; None for what is none, as scripts can write to the directory."""
    try:
        recorded = RankEnd(**(read_json(path) or {}))
        failure = RankEnd(
            rank=int(recorded.rank),
            exit_code=int(recorded.exit_code),
            time=float(recorded.time),
            stderr_tail=str(recorded.stderr_tail),
            attempt=int(recorded.attempt),
        )
    except (OSError, OverflowError, TypeError, ValueError):
        return None
    return failure if 0 <= failure.time <= LATEST_TIME else None


def _folder(run: RunDirectory) -> Path:
    return run.path / "ended"


class OutputTail:
    """The latest lines of each rank. Lines without a rank are kept together."""

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
        """Returns the last lines of a rank's standard error, else those of its standard output."""
        kept = self._errors.get(rank) or self._errors.get(None) or self._output
        text = b"\n".join(kept).decode("utf-8", "replace").strip()
        return text if len(text) <= _LONGEST else "…" + text[-_LONGEST:]


def describe(
    exit_code: int,
    words: OutputTail,
    first: RankEnd | None,
    *,
    memory: str = "",
    node: str = "",
    xid: str = "",
) -> str:
    """Writes the message that says how a run failed: a title, the last words, and the cause if known.

    Args:
        exit_code: Exit code of the entrypoint.
        words: The last lines.
        first: The rank that failed first, if known.
        memory: How much memory was used, if the kernel killed a process for lack of it.
        node: Name of the machine.
        xid: What the kernel's log says of an error of a GPU shortly before.
    """
    code, rank = (exit_code, None) if first is None else (first.exit_code, first.rank)
    subject = "the entrypoint" if rank is None else f"rank {rank}"
    title, output = f"{subject} {describe_exit(code, memory=memory)}", words.of(rank)
    # The last line is what people see first.
    cause = title if memory and output and code == 128 + signal.SIGKILL else ""
    cause = cause or cause_of(code, output, node=node, xid=xid)
    return "\n".join(filter(None, (title, output, cause)))


def describe_exit(exit_code: int, *, memory: str = "") -> str:
    """Says how a process ended: the end of a sentence about it."""
    if exit_code == 128 + signal.SIGKILL and memory:
        return (
            f"was killed for lack of memory: {memory}; use smaller batches, fewer workers of data loaders, "
            "or more memory"
        )
    if exit_code == 128 + signal.SIGKILL:
        return "was killed (SIGKILL); if no person did that, the machine may have run out of memory"
    if exit_code > 128 and exit_code - 128 in set(signal.Signals):
        return f"was ended by {signal.Signals(exit_code - 128).name}"
    if exit_code == 127:
        return "could not be started: command not found (exit code 127)"
    return f"ended with exit code {exit_code}"
