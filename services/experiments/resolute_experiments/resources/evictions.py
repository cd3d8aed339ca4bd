"""Asks runs to checkpoint and exit whose machines are about to be taken away."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute.errors import NotFoundError
from resolute_experiments.context import ServiceContext
from resolute_experiments.notifier import SIGNAL_CHANGES
from resolute_experiments.resources.protocol import EvictionNotice
from resolute_experiments.states import TrialEvent
from resolute_experiments.store import runs, trials
from resolute_experiments.transitions import transition_trial
from resolute_experiments.transitions.signals import SignalReason


async def note_eviction(core: ServiceContext, notice: EvictionNotice) -> None:
    """Has the trial of a run preempted, unless the run has ended or nobody knows it.

    Args:
        core: The service's database, clock and notifier.
        notice: What the engine tells.
    """
    moment = core.moment()

    def work(connection: Connection) -> None:
        run = runs.get(connection, notice.allocation_id)
        if not run.ended:
            transition_trial(
                connection,
                trials.get(connection, trial_id=run.trial_id),
                TrialEvent.PREEMPT,
                moment,
                reason=SignalReason.MACHINE,
                detail=notice.reason,
            )

    try:
        await core.database.write(work)
    except NotFoundError:
        return
    core.notifier.notify(SIGNAL_CHANGES)
