"""Events of a search: facts on which it decides and which never change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from resolute_searcher.log.operations import PostedOperation
from resolute_searcher.spec.space import Json


class ExitReason(Enum):
    """The reason why a trial exited before the search closed it."""

    ERRORED = "errored"
    """It failed more often than it may restart; counts as a failure of the search."""
    USER_REQUESTED_STOP = "user_requested_stop"
    """Its code ended before its operation was complete."""
    USER_CANCELED = "user_canceled"
    """A person cancelled or killed it."""
    INVALID_HP = "invalid_hp"
    """Its code refused the hyperparameters while training."""
    INIT_INVALID_HP = "init_invalid_hp"
    """Its code refused the hyperparameters before training."""

    @property
    def invalid(self) -> bool:
        """Whether the hyperparameters were to blame, so that the trial does not count."""
        return self in (ExitReason.INVALID_HP, ExitReason.INIT_INVALID_HP)


@dataclass(frozen=True, slots=True)
class Started:
    """The search began."""


@dataclass(frozen=True, slots=True)
class TrialCreated:
    """A trial that the search requested was created."""

    trial_key: str


@dataclass(frozen=True, slots=True)
class ValidationCompleted:
    """A trial trained to the length of its operation and validated.

    Attributes:
        trial_key: Identifier of the trial within the search.
        metric: Reported value of the search's metric.
        length: Absolute length of the operation.
    """

    trial_key: str
    metric: float
    length: int


@dataclass(frozen=True, slots=True)
class ValidationReported:
    """A trial of a time-driven search validated.

    Attributes:
        trial_key: Identifier of the trial within the search.
        metric: Reported value of the search's metric.
        time: Value of the time metric, which measures how long the trial has trained.
        run: Number of the run that reported.
        source: Name of the report's spool; empty for reports that are never repeated.
        position: Position in that spool.
    """

    trial_key: str
    metric: float
    time: float
    run: int = 0
    source: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class TrialExited:
    """A trial ended before the search closed it."""

    trial_key: str
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class TrialClosed:
    """A trial has ended: none of its runs is active or will start."""

    trial_key: str


@dataclass(frozen=True, slots=True)
class TrialFenced:
    """A trial was fenced: calls of its runs below `min_run` are refused from now on."""

    trial_key: str
    min_run: int


@dataclass(frozen=True, slots=True)
class OperationsPosted:
    """The client of a custom search answered events.

    Attributes:
        operations: Operations of the client, in order.
        answers: Position of the last event that the operations answer.
    """

    operations: tuple[PostedOperation, ...]
    answers: int


@dataclass(frozen=True, slots=True)
class Suggested:
    """A sampler outside of the search chose the hyperparameters of its next trial.

    Attributes:
        number: Number of the suggestion within the search, from 1.
        hparams: The chosen hyperparameters; None if the choice failed and the search draws them itself.
        notes: Data that the sampler needs for its next suggestions.
        failure: Reason why the choice failed; empty if it did not.
    """

    number: int
    hparams: dict[str, Json] | None
    notes: Json = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Extended:
    """An ended search was extended.

    Attributes:
        max_trials: New number of trials; None for the number before.
        max_length: New length (or time); None for the one before.
    """

    max_trials: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Retried:
    """A failed trial is retried from its latest checkpoint."""

    trial_key: str


TrialEvent: TypeAlias = (
    TrialCreated | ValidationCompleted | ValidationReported | TrialExited | TrialClosed | Retried
)
"""Events of one trial that a search method receives."""

MethodEvent: TypeAlias = Started | TrialEvent | OperationsPosted | Suggested | Extended
"""Events that a search method receives."""

Event: TypeAlias = MethodEvent | TrialFenced
"""Every event of a search's log."""
