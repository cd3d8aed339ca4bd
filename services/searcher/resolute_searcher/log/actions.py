"""Actions, which the experiments service carries out. They follow from operations, with the same reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from resolute_searcher.log.reasons import NOT_RECORDED, Reason
from resolute_searcher.spec.space import Json


@dataclass(frozen=True, slots=True)
class CreateTrial:
    """Create a trial and let it run.

    Attributes:
        trial_key: UUID of the trial within the search.
        hparams: Its hyperparameters by name.
        trial_seed: Seed for its own random numbers.
        checkpoint_id: Checkpoint to start from; empty for none.
    """

    trial_key: str
    hparams: dict[str, Json]
    trial_seed: int
    checkpoint_id: str = ""
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class RunTrial:
    """Run an idle trial again, to an absolute length.

    Attributes:
        trial_key: The trial.
        length: The length; 0 in searches without operations.
        reopens: Whether the trial had ended. It continues from its latest checkpoint, or stays idle if it
            completed that length.
    """

    trial_key: str
    length: int
    reopens: bool = False
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class CloseTrial:
    """Close a trial, which has no more work: it ends once it is idle."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class StopTrial:
    """Stop a running trial by its signal."""

    trial_key: str
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class EndSearch:
    """End the experiment: there are no more trials.

    Attributes:
        cancel: Whether every requested trial was cancelled by a user.
        failure: Whether every requested trial failed.
    """

    cancel: bool
    failure: bool
    reason: Reason = field(default=NOT_RECORDED, compare=False, repr=False)


Action: TypeAlias = CreateTrial | RunTrial | CloseTrial | StopTrial | EndSearch
