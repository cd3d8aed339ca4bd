"""Events of a search: facts on which it decides and which it never changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from resolute_searcher.log.operations import PostedOperation
from resolute_searcher.spec.space import Json


class ExitReason(Enum):
    """Why a trial left before the search closed it."""

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
    """A trial that the search asked for exists."""

    trial_key: str


@dataclass(frozen=True, slots=True)
class ValidationCompleted:
    """A trial trained to the length of its operation and validated.

    Attributes:
        trial_key: The trial's identifier within the search.
        metric: The search's metric as reported.
        length: Absolute length of the operation.
    """

    trial_key: str
    metric: float
    length: int


@dataclass(frozen=True, slots=True)
class ValidationReported:
    """A trial of a time-driven search validated.

    Attributes:
        trial_key: The trial's identifier within the search.
        metric: The search's metric as reported.
        time: The time metric: how far the trial has trained.
        run: Run of the trial that reported.
        source: Names the spool that the report came from; empty for reports that are never repeated.
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
    """A trial is over: nothing of it runs or will run."""

    trial_key: str


@dataclass(frozen=True, slots=True)
class TrialFenced:
    """Calls of runs of a trial below `min_run` are refused from now on."""

    trial_key: str
    min_run: int


@dataclass(frozen=True, slots=True)
class OperationsPosted:
    """The client of a custom search answered events.

    Attributes:
        operations: What it decided, in order.
        answers: Position of the event that it answers, and with it all before.
    """

    operations: tuple[PostedOperation, ...]
    answers: int


@dataclass(frozen=True, slots=True)
class Suggested:
    """A sampler outside of the search chose the hyperparameters of a trial that it wants.

    Attributes:
        number: Which of the search's suggestions it is, from 1.
        hparams: The choice; None when it failed, and the search draws them itself.
        notes: What the sampler keeps for its next suggestions.
        failure: Why the choice failed; empty when it did not.
    """

    number: int
    hparams: dict[str, Json] | None
    notes: Json = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Extended:
    """A search that was over was given more to do.

    Attributes:
        max_trials: Trials from now on; None for as many as before.
        max_length: Length (or time) from now on; None for the one before.
    """

    max_trials: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class Retried:
    """A trial that failed is tried again, from its newest checkpoint."""

    trial_key: str


TrialEvent: TypeAlias = (
    TrialCreated | ValidationCompleted | ValidationReported | TrialExited | TrialClosed | Retried
)
"""Events of one trial that a search method receives."""

MethodEvent: TypeAlias = Started | TrialEvent | OperationsPosted | Suggested | Extended
"""Events that a search method receives."""

Event: TypeAlias = MethodEvent | TrialFenced
"""Every event of a search's log."""
