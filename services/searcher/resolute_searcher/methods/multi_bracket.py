"""Several searches side by side, each with its own trials."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from resolute_searcher.log.events import Extended, MethodEvent, OperationsPosted, Started, Suggested
from resolute_searcher.log.operations import Create, MethodOperation, Progress, Shutdown
from resolute_searcher.methods.base import Sampler, SearchMethod


class MultiBracketSearch:
    """Starts its brackets one after the other, and passes each bracket the events of its own trials.

    Args:
        brackets: The searches; at least one, none of them a tournament.
        split: Divides a number of trials among the brackets.
    """

    def __init__(self, brackets: Sequence[SearchMethod], *, split: Callable[[int], Sequence[int]]) -> None:
        self._brackets = list(brackets)
        self._split = split
        self._bracket_of: dict[str, int] = {}

    def absorb(self, event: MethodEvent) -> None:
        """Passes the event to its bracket, and returns that bracket."""
        match event:
            case Started():
                for bracket in self._brackets:
                    bracket.absorb(event)
            case Extended(max_trials, max_length):
                shares = [None] * len(self._brackets) if max_trials is None else self._split(max_trials)
                for bracket, share in zip(self._brackets, shares, strict=True):
                    bracket.absorb(Extended(share, max_length))
            case OperationsPosted() | Suggested():
                pass
            case _:
                self._brackets[self._bracket_of[event.trial_key]].absorb(event)

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Yields the operations of the event's bracket; at the start and on an extension, of all."""
        deciding = range(len(self._brackets))
        if not isinstance(event, Started | Extended | OperationsPosted | Suggested):
            owner = self._bracket_of[event.trial_key]
            deciding = range(owner, owner + 1)
        for number in deciding:
            for operation in self._brackets[number].decide(event, sampler):
                reason = replace(operation.reason, bracket=number)
                if isinstance(operation, Create):
                    yield replace(operation, bracket=number, reason=reason)
                else:
                    yield replace(operation, reason=reason)

    def apply(self, operation: MethodOperation) -> None:
        """Passes the operation to the bracket of its trial."""
        if isinstance(operation, Progress | Shutdown):
            return
        if isinstance(operation, Create):
            self._bracket_of[operation.trial_key] = operation.bracket
        self._brackets[self._bracket_of[operation.trial_key]].apply(operation)

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the mean progress of the brackets."""
        return sum(bracket.progress(reached) for bracket in self._brackets) / len(self._brackets)

    def snapshot(self) -> dict[str, Any]:
        """Returns the brackets, and the bracket of each trial."""
        return {
            "brackets": [bracket.snapshot() for bracket in self._brackets],
            "owners": dict(self._bracket_of),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the brackets, and the bracket of each trial."""
        for bracket, saved in zip(self._brackets, state["brackets"], strict=True):
            bracket.restore(saved)
        self._bracket_of = dict(state["owners"])
