"""The protocol of search methods, and the sampling of trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from resolute_searcher.log.events import MethodEvent
from resolute_searcher.log.operations import Create, MethodOperation
from resolute_searcher.log.reasons import NOT_RECORDED, Reason
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.space import Json, Space

Observation: TypeAlias = tuple[int, int, float] | tuple[int, None, str]
"""A metric at a length, or an end, of the trial of a suggestion."""

_TRIAL_SEEDS = 1 << 31
_ID_WORDS = 4


class Sampler:
    """Samples the trials of a search. Only here does a search draw random numbers.

    Args:
        space: The hyperparameter space.
        random: The search's random numbers.
    """

    def __init__(self, space: Space, random: RandomStream) -> None:
        self.space = space
        self.random = random

    def trial_seed(self) -> int:
        """Draws a seed for a trial that was created elsewhere."""
        return self.random.bounded(_TRIAL_SEEDS)

    def create(self, reason: Reason = NOT_RECORDED, *, hparams: dict[str, Json] | None = None) -> Create:
        """Creates a trial.

        The order of draws is hyperparameters, identifier, seed: it is what makes equal seeds give equal
        trials.

        Args:
            reason: Why it is wanted.
            hparams: The hyperparameters, or None to sample them.
        """
        if hparams is None:
            hparams = self.space.sample(self.random)
        trial_key = str(UUID(bytes=self.random.octets(_ID_WORDS), version=4))
        seed = self.random.bounded(_TRIAL_SEEDS)
        return Create(trial_key=trial_key, hparams=hparams, trial_seed=seed, reason=reason)


class SearchMethod(Protocol):
    """A deterministic state machine that takes events and yields operations.

    Absorbing events, deciding, and applying decisions are separate, so that recovery can rebuild the state
    from a log of events and operations without new decisions. For each event the owner calls `absorb`. Then
    it takes each operation from `decide` and passes it to `apply` before taking the next; in recovery, it
    passes the recorded operations to `apply`. Both give the same state.
    """

    def absorb(self, event: MethodEvent) -> None:
        """Updates the state with an event."""

    def decide(self, event: MethodEvent, sampler: Sampler) -> Iterator[MethodOperation]:
        """Yields the operations that follow from the event that was just absorbed.

        Each operation should carry its reason. It changes no state itself, except by its owner's applying
        each operation before the next is asked for.
        """

    def apply(self, operation: MethodOperation) -> None:
        """Updates the state with an operation, at its decision or when the log is replayed."""

    def progress(self, reached: Mapping[str, float]) -> float:
        """Returns the progress of the search, from 0 to 1.

        Args:
            reached: Reported progress of open trials, by trial key; trials without a report are absent.
        """

    def snapshot(self) -> dict[str, Any]:
        """Returns the whole state as JSON values; equal states give equal snapshots."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state from a snapshot."""


@dataclass(frozen=True, slots=True)
class SuggestionRequest:
    """A request for the hyperparameters of a search's next trial, which are chosen outside of the search.

    It contains all data that the answer may depend on, so that equal requests have equal answers.

    Attributes:
        number: Number of the suggestion within the search, from 1.
        seed: Seed of the random numbers for the answer.
        sampler_config: Sampler with its settings, in the form of the method.
        smaller_is_better: Whether smaller metrics are better.
        earlier: Hyperparameters and notes of the earlier suggestions, in order.
        facts: Results of their trials, in order: position of the suggestion from 0, length and metric; or
            position, None and the kind of its end.
    """

    number: int
    seed: int
    sampler_config: dict[str, Json]
    smaller_is_better: bool
    earlier: tuple[tuple[dict[str, Json], Json], ...]
    facts: tuple[Observation, ...]
