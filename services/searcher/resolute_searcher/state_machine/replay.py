"""Repeats the decisions of a search's log, and compares them with the recorded ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from resolute.errors import ResoluteError
from resolute_searcher.log.entry import Entry
from resolute_searcher.spec.search import SearchSpec
from resolute_searcher.state_machine.search import Search


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay.

    Attributes:
        equal: Whether every decision equals the recorded one.
        first_difference: Position of the first entry that differs; None if all are equal.
        detail: Description of the difference, for people; empty if all are equal.
        state: State of the search after the last replayed entry, as JSON values.
    """

    equal: bool
    first_difference: int | None
    detail: str
    state: dict[str, Any]


def replay(spec: SearchSpec, log: Iterable[Entry]) -> Replay:
    """Repeats the decisions of a log, up to its end or the first difference.

    Args:
        spec: The search's spec.
        log: Its entries from the first on, in order.
    """
    search = Search(spec)
    for entry in log:
        detail = _difference(search, entry)
        if detail:
            return Replay(
                equal=False, first_difference=entry.sequence, detail=detail, state=search.state.snapshot()
            )
    return Replay(equal=True, first_difference=None, detail="", state=search.state.snapshot())


def _difference(search: Search, recorded: Entry) -> str:
    try:
        again = search.record(recorded.event)
    except ResoluteError as error:
        return f"{recorded.event} is refused now: {error}"
    if again is None:
        return f"{recorded.event} changes nothing now"
    # Compared as text, since a metric can be NaN, which equals nothing.
    pairs = [
        ("operations", again.operations, recorded.operations),
        ("actions", again.actions, recorded.actions),
        ("random words", again.draws, recorded.draws),
        ("number of actions", again.last_action, recorded.last_action),
    ]
    for name, now, then in pairs:
        if repr(now) != repr(then):
            return f"{name} after {recorded.event}: decided now {now}, recorded {then}"
    return ""
