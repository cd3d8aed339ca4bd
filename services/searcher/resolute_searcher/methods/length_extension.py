"""Trials at full length that continue when the search is extended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from resolute_searcher.log.operations import Close, MethodOperation, ValidateAfter
from resolute_searcher.log.reasons import Reason, ReasonKind


class LengthExtension:
    """The trials that are complete, and those that wait to continue."""

    def __init__(self) -> None:
        self._complete: dict[str, None] = {}
        self._left: set[str] = set()
        self._waiting: dict[str, None] = {}

    def leave(self, trial_key: str) -> None:
        """Marks a trial that exited early: an extension does not continue it."""
        self._left.add(trial_key)

    def retry(self, trial_key: str) -> None:
        """Removes the mark of a trial that is retried."""
        self._left.discard(trial_key)

    def end(self, trial_key: str) -> None:
        """Stores a trial as complete, unless it exited early."""
        if trial_key not in self._left:
            self._complete[trial_key] = None

    def extend(self) -> None:
        """Queues all complete trials for more training."""
        self._waiting.update(self._complete)
        self._complete.clear()

    def next(self, length: int) -> Iterator[MethodOperation]:
        """Yields the operations of the first queued trial, if there is one."""
        for trial_key in self._waiting:
            yield ValidateAfter(trial_key, length, Reason(ReasonKind.SEARCH_EXTENDED))
            yield Close(trial_key, Reason(ReasonKind.MAX_LENGTH_REACHED))
            return

    def dequeue(self, trial_key: str) -> bool:
        """Removes a trial that got work from the queue; returns whether it was queued."""
        if trial_key not in self._waiting:
            return False
        del self._waiting[trial_key]
        return True

    def snapshot(self) -> dict[str, Any]:
        """Returns the whole state as JSON values."""
        return {
            "complete": list(self._complete),
            "left": sorted(self._left),
            "waiting": list(self._waiting),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the whole state from a snapshot."""
        self._complete = dict.fromkeys(state["complete"])
        self._left = set(state["left"])
        self._waiting = dict.fromkeys(state["waiting"])

    @property
    def waits(self) -> bool:
        """Whether a trial is queued for more training."""
        return bool(self._waiting)
