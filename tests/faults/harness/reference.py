"""What the search decides when nobody disturbs it, if its operations complete in the order of their issue."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from resolute_searcher.log.events import TrialCreated, ValidationCompleted
from resolute_searcher.log.operations import Create, Operation, ValidateAfter
from resolute_searcher.spec.search import SearchSpec
from resolute_searcher.state_machine.search import Search, start


@dataclass(frozen=True)
class Completion:
    """An operation that completes, and what the search makes of it."""

    trial_key: str
    length: int
    metric: float
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class ReferenceRun:
    """How a search goes."""

    first: tuple[Operation, ...]
    """What it decides when it begins."""
    completions: tuple[Completion, ...]
    """The completions, in order."""


def undisturbed(spec: SearchSpec, metric: Callable[[Any, int], float]) -> ReferenceRun:
    """Plays a search by itself, without services or processes.

    Args:
        spec: The search.
        metric: The metric of some hyperparameters at a length.
    """
    search, entry = start(spec)
    hparams: dict[str, Any] = {}
    waiting: deque[ValidateAfter] = deque()
    _enqueue(search, entry.operations, waiting, hparams)
    completions: list[Completion] = []
    while waiting:
        operation = waiting.popleft()
        value = metric(hparams[operation.trial_key], operation.length)
        completed = search.record(ValidationCompleted(operation.trial_key, value, operation.length))
        assert completed is not None
        completions.append(
            Completion(operation.trial_key, operation.length, value, tuple(completed.operations))
        )
        _enqueue(search, completed.operations, waiting, hparams)
    return ReferenceRun(first=tuple(entry.operations), completions=tuple(completions))


def _enqueue(
    search: Search,
    operations: Sequence[Operation],
    waiting: deque[ValidateAfter],
    hparams: dict[str, Any],
) -> None:
    for operation in operations:
        if isinstance(operation, Create):
            hparams[operation.trial_key] = operation.hparams
            search.record(TrialCreated(operation.trial_key))
        elif isinstance(operation, ValidateAfter):
            waiting.append(operation)
