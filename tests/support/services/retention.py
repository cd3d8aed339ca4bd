"""A policy applied as the experiments service does: to every checkpoint that there is."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from resolute.contracts.clock import Clock
from resolute_checkpoints.retention.collector import Collector
from resolute_checkpoints.retention.enforcement import RetentionEnforcer, RetentionRequest
from resolute_checkpoints.store import ranks
from resolute_serving.database.engine import Database


class Registered(Protocol):
    """The parts of a checkpoints service."""

    @property
    def database(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def collector(self) -> Collector: ...


async def whole(database: Database, wanted: RetentionRequest) -> RetentionRequest:
    """The request with every checkpoint ranked that the experiment has now."""
    found = await database.read(lambda c: ranks.candidates(c, wanted.experiment_id, now=0.0))
    return dataclasses.replace(wanted, ranked=frozenset(each.checkpoint_id for each in found))


async def expire(registered: Registered, wanted: RetentionRequest) -> Sequence[str]:
    """Deletes what a policy does not keep, and returns it."""
    enforcer = RetentionEnforcer(
        database=registered.database, clock=registered.clock, wake=registered.collector.passes.wake
    )
    ranked = await whole(registered.database, wanted)
    return await enforcer.apply(ranked, deletable=await enforcer.preview(ranked))
