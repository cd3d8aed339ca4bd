"""Makes a restored or copied cluster a new incarnation, separate from its original."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_checkpoints.blueprint import BLUEPRINT as CHECKPOINTS
from resolute_checkpoints.store.files import inheritance
from resolute_embedded.home.state_directory import StateDirectory
from resolute_experiments.blueprint import BLUEPRINT as EXPERIMENTS
from resolute_experiments.exits.incarnation import lose_runs
from resolute_experiments.timing import Timing
from resolute_serving.database.engine import create_engine
from resolute_serving.server.service import Blueprint

T = TypeVar("T")
DatabaseUrl = Callable[[str], str]
"""Gives the URL of the database of a service."""


def begin_incarnation(database_url: DatabaseUrl, *, take_over: bool, clock: Clock = SYSTEM_CLOCK) -> None:
    """Makes the databases those of a new incarnation. No service may use them meanwhile. Safe to repeat.

    Runs that were under way count as lost: their trials continue as new runs, from their last checkpoints.

    Args:
        database_url: Where the databases are; they have the newest schema.
        take_over: Whether the original is gone for good, so that its checkpoints are this cluster's own.
        clock: Tells when the runs were lost.
    """
    timing = Timing(now=clock.time(), preemption_timeout=0.0)
    _write(EXPERIMENTS, database_url, lambda connection: lose_runs(connection, timing))
    if not take_over:
        _write(CHECKPOINTS, database_url, inheritance.inherit_all)


def take_over_checkpoints(database_url: DatabaseUrl) -> int:
    """Makes inherited checkpoints this cluster's own. Services may use the database meanwhile.

    Returns:
        How many there were.
    """
    return _write(CHECKPOINTS, database_url, inheritance.take_over)


def begin_home(state: StateDirectory, *, take_over: bool) -> None:
    """Makes the cluster of a home a new incarnation. The home is not served.

    Unless it takes over from its original, it gets an id and a signing key of its own: a trial of either
    cluster that finds the other at its port is not let in, and waits for its own.
    """
    begin_incarnation(state.databases.url, take_over=take_over)
    if not take_over:
        state.cluster_id.renew()
        state.signing_key.unlink(missing_ok=True)


def _write(blueprint: Blueprint, database_url: DatabaseUrl, work: Callable[[Connection], T]) -> T:
    engine = create_engine(database_url(blueprint.name), name=blueprint.name, writes=True)
    try:
        with engine.begin() as connection:
            return work(connection)
    finally:
        engine.dispose()
