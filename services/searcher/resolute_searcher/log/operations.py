"""Operations: the decisions of a search.

Operations are recorded with the event that caused them, each with its reason.

Reasons are not part of the decision: comparisons of operations ignore them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from resolute_searcher.log.reasons import NOT_RECORDED, Reason
from resolute_searcher.spec.space import Json


@dataclass(frozen=True, slots=True)
class Create:
    """Create a trial.

    Attributes:
        trial_key: UUID of the trial within the search.
        hparams: Its hyperparameters by name.
        trial_seed: Seed for its own random numbers, from 0 to 2**31 - 1.
        bracket: Position of the bracket that requested it; 0 in methods without brackets.
        checkpoint_id: Checkpoint to start from; empty for that of the search, if any.
    """

    trial_key: str
    hparams: dict[str, Json]
    trial_seed: int
    bracket: int = 0
    checkpoint_id: str = ""
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ValidateAfter:
    """Train a trial to an absolute length in the units of the config, then validate."""

    trial_key: str
    length: int
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Close:
    """Close a trial: it gets no more operations once it has completed those it has."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """End a running trial of a time-driven search."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Promote:
    """A trial rises to a rung without an action.

    Either it has exited and counts with the worst metric, or it keeps running in a time-driven search. The
    promotion is recorded although it causes no action, because later decisions depend on it.
    """

    trial_key: str
    rung: int
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the search.

    Attributes:
        cancel: Whether every requested trial was cancelled by a user.
        failure: Whether every requested trial failed.
    """

    cancel: bool = False
    failure: bool = False
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a custom search from its client, from 0 to 1."""

    progress: float
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


TrialOperation: TypeAlias = Create | ValidateAfter | Close | Stop | Promote
"""Operations about one trial."""

PostedOperation: TypeAlias = Create | ValidateAfter | Close | Progress | Shutdown
"""Operations that the client of a custom search can post."""

MethodOperation: TypeAlias = TrialOperation | Progress | Shutdown
"""Operations that a search method decides. Only custom ones decide the last two themselves."""

Operation: TypeAlias = MethodOperation
"""Every operation of a search's log."""
