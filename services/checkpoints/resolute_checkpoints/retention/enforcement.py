"""Deletes the checkpoints that an experiment's policy does not keep. Files are removed in the background."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_checkpoints.domain.checkpoint import Candidate, State
from resolute_checkpoints.retention.policy import RetentionPolicy, Selection, select_deletions
from resolute_checkpoints.store import audit, fencing, ranks
from resolute_checkpoints.store.files import removals
from resolute_serving.context import actor
from resolute_serving.database.engine import Database


@dataclass(frozen=True, slots=True)
class Validation:
    """A value of the searcher's metric."""

    value: float
    time: float
    """Seconds since 1970; the earlier of two equal values is the better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionRequest:
    """The policy of one experiment, and the data that decide what it keeps."""

    experiment_id: str
    policy: RetentionPolicy
    smaller_is_better: bool
    validations: Mapping[tuple[str, int], Validation]
    """By trial and steps. A checkpoint without one has that of an earlier request."""
    ranked: frozenset[str] = frozenset()
    """Checkpoints of which ``validations`` has every value that was reported before they were listed."""
    sources: frozenset[str] = frozenset()
    """Checkpoints from which other trials begin."""
    awaited: frozenset[str] = frozenset()
    """Trials of which reports have not all arrived."""
    good_steps: Mapping[str, int] = field(default_factory=dict)
    """Trials that may go back, each with the steps to which its reports are known to be good."""


class RetentionEnforcer:
    """Applies retention.

    Args:
        database: The registry.
        clock: Clock for the times of changes.
        wake: Wakes the collector, which removes the files of marked checkpoints.
    """

    def __init__(self, *, database: Database, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._wake = wake

    async def preview(self, wanted: RetentionRequest) -> Sequence[str]:
        """Returns the checkpoints that a policy would delete."""
        now = self._clock.time()
        found = await self._database.read(lambda c: ranks.candidates(c, wanted.experiment_id, now=now))
        return _select([_ranked(candidate, wanted) for candidate in found], wanted).deleted

    async def apply(self, wanted: RetentionRequest, *, deletable: Collection[str]) -> Sequence[str]:
        """Marks the checkpoints that a policy deletes, all or none, and returns them. Idempotent.

        Args:
            wanted: What shall stay.
            deletable: What may go; a checkpoint that lost its place since goes the next time.

        Raises:
            NotFoundError: The experiment was deleted.
        """
        who = actor()

        def mark(connection: Connection) -> Sequence[str]:
            fencing.require_experiment(connection, wanted.experiment_id, lock=True)
            now = self._clock.time()
            found = ranks.candidates(connection, wanted.experiment_id, now=now, lock=True)
            candidates = [_ranked(candidate, wanted) for candidate in found]
            selection = _select(candidates, wanted)
            ranks.rank(connection, (c for c, known in zip(candidates, found, strict=True) if c != known))
            ranks.explain(
                connection, {id_: [why.value for why in kept] for id_, kept in selection.kept.items()}
            )
            chosen = [checkpoint_id for checkpoint_id in selection.deleted if checkpoint_id in deletable]
            for checkpoint_id in chosen:
                removals.mark_for_removal(connection, checkpoint_id, state=State.DELETING, now=now)
                audit.record(
                    connection,
                    action="checkpoint.expire",
                    target=checkpoint_id,
                    actor=who,
                    now=now,
                    **dataclasses.asdict(wanted.policy),
                )
            return chosen

        deleted = await self._database.write(mark)
        if deleted:
            self._wake()
        return deleted


def _select(candidates: Sequence[Candidate], wanted: RetentionRequest) -> Selection:
    return select_deletions(
        candidates,
        wanted.policy,
        smaller_is_better=wanted.smaller_is_better,
        sources=wanted.sources,
        awaited=wanted.awaited,
        good_steps=wanted.good_steps,
    )


def _ranked(candidate: Candidate, wanted: RetentionRequest) -> Candidate:
    """Returns the candidate with its rank from the request, or from an earlier request."""
    if candidate.checkpoint_id not in wanted.ranked:
        return candidate
    validation = wanted.validations.get((candidate.trial_id, candidate.steps_completed))
    if validation is None:
        return dataclasses.replace(candidate, ranked=True)
    # SQLite would store a value that is no number as none too.
    metric = None if math.isnan(validation.value) else validation.value
    return dataclasses.replace(candidate, ranked=True, metric=metric, validation_order=validation.time)
