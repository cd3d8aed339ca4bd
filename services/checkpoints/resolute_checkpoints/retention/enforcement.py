"""Deletes what an ended experiment's policy does not keep. Files go in the background, and are retried."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.contracts.clock import Clock
from resolute_checkpoints.domain.checkpoint import Candidate, State
from resolute_checkpoints.retention.policy import RetentionPolicy, select_deletions
from resolute_checkpoints.store import audit, fencing, records
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
    """What shall stay of one experiment."""

    experiment_id: str
    policy: RetentionPolicy
    smaller_is_better: bool
    validations: Mapping[tuple[str, int], Validation]
    """By trial and steps."""
    pinned: frozenset[str] = frozenset()
    """Checkpoints that stay whatever the policy says."""


class RetentionEnforcer:
    """Applies retention.

    Args:
        database: The registry.
        clock: Tells the time of changes.
        wake: Makes somebody remove the files of what was marked.
    """

    def __init__(self, *, database: Database, clock: Clock, wake: Callable[[], None]) -> None:
        self._database = database
        self._clock = clock
        self._wake = wake

    async def preview(self, wanted: RetentionRequest) -> Sequence[str]:
        """Says which checkpoints would go."""
        return await self._database.read(lambda connection: _chosen(connection, wanted))

    async def apply(self, wanted: RetentionRequest) -> Sequence[str]:
        """Marks the checkpoints that go, all or none, and returns them. Safe to repeat.

        Raises:
            NotFoundError: The experiment was deleted.
        """
        who = actor()

        def mark(connection: Connection) -> Sequence[str]:
            fencing.require_experiment(connection, wanted.experiment_id, lock=True)
            now = self._clock.time()
            chosen = _chosen(connection, wanted)
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


def _chosen(connection: Connection, wanted: RetentionRequest) -> Sequence[str]:
    ranked = [
        _ranked(candidate, wanted) for candidate in records.candidates(connection, wanted.experiment_id)
    ]
    selection = select_deletions(
        ranked, wanted.policy, smaller_is_better=wanted.smaller_is_better, pinned=wanted.pinned
    )
    return selection.deleted


def _ranked(candidate: Candidate, wanted: RetentionRequest) -> Candidate:
    found = wanted.validations.get((candidate.trial_id, candidate.steps_completed))
    if found is None:
        return candidate
    return dataclasses.replace(candidate, metric=found.value, validation_order=found.time)
