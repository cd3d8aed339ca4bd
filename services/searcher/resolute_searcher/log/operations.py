"""Operations: the decisions of a search.

Operations are recorded beside the event that caused them, each with its reason.

Reasons are not part of the decision: they are ignored when operations are compared.
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
        bracket: Position of the bracket that asked for it; 0 in methods without brackets.
        checkpoint_id: Checkpoint to start from; empty for the search's own, if it has one.
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
    """No more work for a trial once it has done what it was given."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Stop:
    """End a running trial of a time-driven search."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Promote:
    """A trial rises to a rung with nothing to do for anyone who runs it.

    Either it has exited, and takes the worst metric with it, or it runs by itself in a time-driven search. It
    is recorded, although nothing acts on it, because it is a decision that later decisions rest on.
    """

    trial_key: str
    rung: int
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The search is over.

    Attributes:
        cancel: Every requested trial was cancelled by a person.
        failure: Every requested trial failed.
    """

    cancel: bool = False
    failure: bool = False
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Progress:
    """The client of a custom search tells how far the search is, from 0 to 1."""

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
