"""Disables and enables slots."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.engine import Connection

from resolute_experiments.states import TrialEvent
from resolute_experiments.store import audit, disabled_slots, runs, trials
from resolute_experiments.timing import Timing
from resolute_experiments.transitions import transition_trial
from resolute_experiments.transitions.signals import SignalReason

_DETAIL = "its slot was disabled"


def disable(
    connection: Connection, slot_ids: Collection[int], *, pool: str, drain: bool, timing: Timing
) -> None:
    """Lets no run start on slots any more.

    Args:
        connection: A transaction.
        slot_ids: The slots.
        pool: Their pool.
        drain: Whether the runs that hold them go on to their end. Otherwise they are asked to checkpoint and
            exit, and their trials wait for other slots.
        timing: Now.
    """
    disabled_slots.write(connection, slot_ids, pool=pool, draining=drain, now=timing.now)
    audit.record(connection, "disable_slots", _label(slot_ids, pool), now=timing.now, drain=drain)
    if drain:
        return
    for run in runs.unfinalized(connection):
        held = {*run.slot_ids} if run.resource_pool == pool else set()
        if not run.preempt and not run.kill and held.intersection(slot_ids):
            trial = trials.get(connection, trial_id=run.trial_id)
            transition_trial(
                connection,
                trial,
                TrialEvent.PREEMPT,
                timing,
                reason=SignalReason.MACHINE,
                detail=_DETAIL,
            )


def enable(connection: Connection, slot_ids: Collection[int], *, pool: str, now: float) -> None:
    """Lets runs start on slots of a pool again."""
    disabled_slots.remove(connection, slot_ids, pool=pool)
    audit.record(connection, "enable_slots", _label(slot_ids, pool), now=now)


def _label(slot_ids: Collection[int], pool: str) -> str:
    return f"slots {', '.join(map(str, sorted(slot_ids)))} of pool {pool}"
