"""The state of one trial in its search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resolute_searcher.log.events import ExitReason


@dataclass(slots=True)
class TrialState:
    """The state of a trial in its search, which the search changes.

    Attributes:
        length: Absolute length of the current operation; 0 before the first, and in searches without
            operations.
        pending: Whether that operation is incomplete.
        created: Whether the trial exists.
        closing: Whether the search closed or stopped it, so that no operation follows.
        closed: Whether it has ended.
        idle: Whether it had no work when its last run was fenced, and was not requested to run again since.
        exit: Reason of an exit before it was closed; None if there was none.
        min_run: Lowest run whose calls are accepted.
        done: Length and metric of its last completed operation.
        report_positions: Position of the last accepted validation report, by run and source.
        decided_at: Position of the last event with a decision about it, or with its exit.
    """

    length: int = 0
    pending: bool = False
    created: bool = False
    closing: bool = False
    closed: bool = False
    idle: bool = False
    exit: ExitReason | None = None
    min_run: int = 0
    done: tuple[int, float] | None = None
    report_positions: dict[tuple[int, str], int] | None = None
    decided_at: int = 0

    @property
    def ended(self) -> bool:
        """Whether the search expects no more events of the trial."""
        return self.closed or self.exit is not None

    @property
    def repeats(self) -> bool:
        """Whether the current operation has the length that was completed last."""
        return self.completed(self.length)

    def completed(self, length: int) -> bool:
        """Returns whether the operation that was completed last had this length."""
        return self.done is not None and self.done[0] == length

    def to_json(self) -> list[Any]:
        """Returns the fields as a JSON list, without names because there are many trials."""
        flags = [self.pending, self.created, self.closing, self.closed, self.idle]
        report_positions = [
            [run, source, last] for (run, source), last in (self.report_positions or {}).items()
        ]
        return [
            self.length,
            sum(1 << bit for bit, flag in enumerate(flags) if flag),
            self.exit.value if self.exit else None,
            self.min_run,
            # As text, since JSON has neither NaN nor infinities.
            [self.done[0], repr(self.done[1])] if self.done else None,
            report_positions,
            self.decided_at,
        ]

    @classmethod
    def from_json(cls, fields: list[Any]) -> TrialState:
        """Reads what `to_json` wrote."""
        length, flags, left, min_run, done, report_positions, decided_at = fields
        return cls(
            length,
            bool(flags & 1),
            bool(flags & 2),
            bool(flags & 4),
            bool(flags & 8),
            bool(flags & 16),
            ExitReason(left) if left else None,
            min_run,
            (done[0], float(done[1])) if done else None,
            {(run, source): last for run, source, last in report_positions} if report_positions else None,
            decided_at,
        )
