"""What happens to a search. Events are facts: the search decides upon them and never changes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


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

    request_id: str


@dataclass(frozen=True, slots=True)
class ValidationCompleted:
    """A trial trained to the length of its operation and validated.

    Attributes:
        request_id: The trial's identifier within the search.
        metric: The search's metric as reported.
        length: Absolute length of the operation.
    """

    request_id: str
    metric: float
    length: int


@dataclass(frozen=True, slots=True)
class ValidationReported:
    """A trial of a time-driven search validated.

    Attributes:
        request_id: The trial's identifier within the search.
        metric: The search's metric as reported.
        time: The time metric: how far the trial has trained.
        run: Run of the trial that reported.
        source: Names the spool that the report came from; empty for reports that are never repeated.
        position: Position in that spool.
    """

    request_id: str
    metric: float
    time: float
    run: int = 0
    source: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class TrialExited:
    """A trial ended before the search closed it."""

    request_id: str
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class TrialClosed:
    """A trial is over: nothing of it runs or will run."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Sealed:
    """Runs of a trial below `min_run` lost their authority."""

    request_id: str
    min_run: int


MethodEvent: TypeAlias = (
    Started | TrialCreated | ValidationCompleted | ValidationReported | TrialExited | TrialClosed
)
"""Events that a search method hears of."""

Event: TypeAlias = MethodEvent | Sealed
"""Every event of a search's log."""
