"""Live retention: deletes, while trials run, checkpoints that newer ones have replaced.

The registry records which trials have committed since their last retention, so no work is lost if this
service is killed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import partial

import structlog

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.errors import ResoluteError, UnavailableError
from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.retention.garbage_collection import (
    Unreported,
    collect,
    keep_all,
    trials_awaiting_reports,
)
from resolute_experiments.states import LIVE_EXPERIMENTS
from resolute_experiments.store import experiments
from resolute_experiments.store.copies import reported_steps
from resolute_experiments.store.experiments import Experiment
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat

_BUSY_SECONDS = 0.2
"""Between two looks while trials commit: one that fills its disk waits for what is deleted here."""
_IDLE_SECONDS = 2.0
_QUIET_SECONDS = 5.0
"""Between two looks while no trial runs that could commit."""
_LATE_SECONDS = 10.0
"""Between two looks at an experiment whose reports have not all arrived, or that refuses."""
_DEADLINE = 30.0
_log = structlog.get_logger("retention")


class LiveRetention:
    """Applies the policies of experiments that have not ended.

    Args:
        core: The context that all handlers share.
        clients: The other services.
        unreported: Returns the allocations whose reports have not all arrived.
    """

    def __init__(self, core: ServiceContext, *, clients: Clients, unreported: Unreported) -> None:
        self._core = core
        self._clients = clients
        self._unreported = unreported
        self._later: dict[str, float] = {}
        self._running = Remembered(core.database, partial(reported_steps.due, after=0, limit=1))

    async def run(self) -> None:
        """Looks for new checkpoints until the service stops."""

        async def look() -> float:
            if await self.look():
                return _BUSY_SECONDS
            return _IDLE_SECONDS if await self._running.get() else _QUIET_SECONDS

        failures = LoggedBackoff(_log, "checkpoints of running trials cannot be collected")
        await repeat(look, notifier=self._core.notifier, failures=failures)

    async def look(self) -> bool:
        """Applies the policy of each experiment with new checkpoints; says whether there was one.

        Raises:
            UnavailableError: A service is away; to be repeated.
        """
        request = checkpoints_pb2.ListUnrankedCheckpointsRequest()
        response = await self._clients.checkpoints.ListUnrankedCheckpoints(request, timeout=_DEADLINE)
        unranked: defaultdict[str, set[str]] = defaultdict(set)
        for trial in response.trials:
            unranked[trial.experiment_id].add(trial.trial_id)
        now = self._core.clock.monotonic()
        self._later = {id_: due for id_, due in self._later.items() if due > now and id_ in unranked}
        wanted = sorted(unranked.keys() - self._later.keys())
        if not wanted:
            return False
        known = await self._core.database.read(lambda c: experiments.known(c, wanted))
        looked = False
        for experiment_id in wanted:
            looked |= await self._look_at(experiment_id, known.get(experiment_id), unranked[experiment_id])
        return looked

    async def _look_at(
        self, experiment_id: str, experiment: Experiment | None, trial_ids: Collection[str]
    ) -> bool:
        try:
            if experiment is None or not _is_collected(experiment):
                await keep_all(experiment_id, trial_ids, clients=self._clients)
                return True
            return await self._collect(experiment, trial_ids)
        except UnavailableError:
            raise
        except ResoluteError as refusal:
            _log.warning("checkpoints are all kept", experiment=experiment_id, reason=str(refusal))
            self._later[experiment_id] = self._core.clock.monotonic() + _LATE_SECONDS
            return False

    async def _collect(self, experiment: Experiment, trial_ids: Collection[str]) -> bool:
        database = self._core.database
        late = await trials_awaiting_reports(experiment, unreported=self._unreported, database=database)
        ready = set(trial_ids) - late
        if set(trial_ids) & late:
            self._later[experiment.id] = self._core.clock.monotonic() + _LATE_SECONDS
        if ready:
            await collect(
                experiment,
                policy={},
                late=late,
                preview=False,
                database=database,
                clients=self._clients,
                training=ready,
            )
        return bool(ready)


def _is_collected(experiment: Experiment) -> bool:
    """Whether a policy deletes its checkpoints while it runs; what has ended was collected at its end."""
    return (
        experiment.state in LIVE_EXPERIMENTS
        and not experiment.unmanaged
        and bool(experiment.config.get("checkpoint_storage"))
    )
