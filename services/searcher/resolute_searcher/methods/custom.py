"""A custom search: a client receives the events and posts the operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from resolute_searcher.log.events import MethodEvent, OperationsPosted
from resolute_searcher.log.operations import Create, MethodOperation, Progress, Shutdown
from resolute_searcher.log.reasons import Reason, ReasonKind
from resolute_searcher.methods.base import Sampler

_CLIENT_DECISION = Reason(ReasonKind.CLIENT_DECISION)


class CustomSearch:
    """Passes on the operations that its client posts."""

    def __init__(self) -> None:
        self._progress = 0.0

    def absorb(self, event: MethodEvent) -> None:
        """Does nothing: the client keeps the state."""

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Yields the posted operations; trials without a seed get one."""
        if not isinstance(event, OperationsPosted):
            return
        for operation in event.operations:
            if isinstance(operation, Create) and not operation.trial_seed:
                operation = replace(operation, trial_seed=sampler.trial_seed())  # noqa: PLW2901
            yield replace(operation, reason=_CLIENT_DECISION)

    def apply(self, operation: MethodOperation) -> None:
        """Stores the progress."""
        match operation:
            case Progress(progress):
                self._progress = progress
            case Shutdown():
                self._progress = 1.0

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the progress that the client sent last."""
        return self._progress

    def snapshot(self) -> dict[str, Any]:
        """Returns the progress."""
        return {"progress": self._progress}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the progress."""
        self._progress = state["progress"]
