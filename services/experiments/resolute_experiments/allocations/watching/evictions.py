"""Asks runs on machines that will be taken away to checkpoint and exit."""

from __future__ import annotations

import structlog
from sqlalchemy.engine import Connection

from resolute.errors import InternalError, NotFoundError, ResoluteError
from resolute_engines.protocol import EvictionNotice
from resolute_experiments.context import ServiceContext
from resolute_experiments.states import TrialEvent
from resolute_experiments.store import runs, trials
from resolute_experiments.topics import SIGNAL_CHANGES
from resolute_experiments.transitions import transition_trial
from resolute_experiments.transitions.signals import SignalReason

_log = structlog.get_logger("fleet")


class Evictions:
    """The eviction notices of an engine. Notices that cannot be written yet are kept in memory.

    Args:
        core: The service's database, clock and notifier.
    """

    def __init__(self, core: ServiceContext) -> None:
        self._core = core
        self._unnoted: dict[str, EvictionNotice] = {}
        """Notices that could not be noted yet, by allocation: an engine tells each once."""

    async def note_or_keep(self, notice: EvictionNotice) -> None:
        """Has the trial of a run preempted; what cannot be noted now is kept for ``note_again``."""
        try:
            await self._note(notice)
        except Exception as failure:  # noqa: BLE001 - the others must be noted; this one is noted later
            expected = isinstance(failure, ResoluteError) and not isinstance(failure, InternalError)
            _log.warning(
                "the eviction of a run could not be recorded; it will be tried again",
                allocation=notice.allocation_id,
                reason=str(failure),
                exc_info=None if expected else failure,
            )
            self._unnoted[notice.allocation_id] = notice

    async def note_again(self) -> None:
        """Notes what could not be noted when it came, such as while the database was away."""
        waiting, self._unnoted = self._unnoted, {}
        for notice in waiting.values():
            await self.note_or_keep(notice)

    async def _note(self, notice: EvictionNotice) -> None:
        """Has the trial of a run preempted, unless the run has ended or is unknown."""
        timing = self._core.timing()

        def work(connection: Connection) -> None:
            run = runs.get(connection, notice.allocation_id)
            if not run.ended:
                transition_trial(
                    connection,
                    trials.get(connection, trial_id=run.trial_id),
                    TrialEvent.PREEMPT,
                    timing,
                    reason=SignalReason.MACHINE,
                    detail=notice.reason,
                )

        try:
            await self._core.database.write(work)
        except NotFoundError:
            return
        self._core.notifier.notify(SIGNAL_CHANGES)
