"""Limits for the names of groups and metrics, and for their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from resolute.contracts.spool.format import MAX_NAME_LENGTH
from resolute_metrics.limits import Limits
from resolute_metrics.store.rows import Piece
from resolute_metrics.store.streams import Stream


def name_error(piece: Piece) -> str | None:
    """Returns an error about the names of a piece; None if they are valid."""
    group = piece.group
    if not group or "." in group:
        return (
            f"group {group[:80]!r} is not allowed; a group's name must not be empty and must not contain '.'"
        )
    if len(group) > MAX_NAME_LENGTH or "\0" in group:
        return f"group {group[:80]!r} is not allowed; use at most {MAX_NAME_LENGTH} printable characters"
    for name in piece.fields():
        if not name or len(name) > MAX_NAME_LENGTH:
            return (
                f"group {group!r}: metric {name[:80]!r} is not allowed; a metric's name must have from 1 to "
                f"{MAX_NAME_LENGTH} characters"
            )
    return None


class NameCounter:
    """Counts the names of one trial, and refuses new ones above the limit.

    Args:
        run_streams: The streams of the reporting run in the groups of the batch.
        whole_trial: Returns all streams of the trial. It is called only if a name is new to the run.
        limits: Limits of names and combinations.
    """

    def __init__(
        self, run_streams: Sequence[Stream], *, whole_trial: Callable[[], Sequence[Stream]], limits: Limits
    ) -> None:
        self._whole_trial = whole_trial
        self._limits = limits
        self._known = {(stream.group, name) for stream in run_streams for name in stream.fields()}
        self._combinations = {(stream.group, stream.names) for stream in run_streams}
        self._counts_all = False

    def count_error(self, piece: Piece) -> str | None:
        """Counts the names of a piece; returns an error if there are too many, otherwise None."""
        names = {(piece.group, name) for name in piece.fields()}
        if not names <= self._known and not self._counts_all:
            self._known |= {
                (stream.group, name) for stream in self._whole_trial() for name in stream.fields()
            }
            self._counts_all = True
        fresh = names - self._known
        if fresh and len(self._known) + len(fresh) > self._limits.names:
            return (
                f"group {piece.group!r}: metric {min(fresh)[1]!r} is one name too many, the trial has "
                f"{len(self._known)} and may have {self._limits.names}; put what varies into steps or "
                "values, not into names"
            )
        combination = piece.group, piece.names
        if combination not in self._combinations and len(self._combinations) >= self._limits.combinations:
            return (
                f"group {piece.group!r}: this is one combination of names too many, the run may have "
                f"{self._limits.combinations}; report the same metrics together each time"
            )
        self._known |= fresh
        self._combinations.add(combination)
        return None
