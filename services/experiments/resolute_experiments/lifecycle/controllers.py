"""The controllers of all live experiments: one each, from its adoption until its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from resolute_experiments.clients import Clients
from resolute_experiments.context import ServiceContext
from resolute_experiments.lifecycle.controller import ExperimentController, FleetProtocol
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES

_log = structlog.get_logger("experiments")


class Controllers:
    """The controllers of all live experiments.

    Args:
        core: What all parts of this service share.
        clients: The other services.
        lease_ttl: Seconds after which a machine that fell silent is noticed at the latest.
        machines: Where runs are, and what they left.
        copy_metrics: Copies every change that the metrics service has now.
        judge: Judges what a trial, given by its UUID, has reported until now.
    """

    def __init__(
        self,
        core: ServiceContext,
        *,
        clients: Clients,
        lease_ttl: float,
        machines: FleetProtocol,
        copy_metrics: Callable[[], Awaitable[None]],
        judge: Callable[[str], Awaitable[None]],
    ) -> None:
        self._core = core
        self._clients = clients
        self._lease_ttl = lease_ttl
        self._machines = machines
        self._copy_metrics = copy_metrics
        self._judge = judge
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Experiments that were to be led while somebody led them, and perhaps was about to stop.
        self._asked_again: set[str] = set()

    def adopt(self, experiment_id: str) -> None:
        """Begins to lead an experiment, unless that is done already."""
        current = self._tasks.get(experiment_id)
        if current is not None and not current.done():
            self._asked_again.add(experiment_id)
            self._core.notifier.notify(experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
            return
        controller = ExperimentController(
            experiment_id,
            self._core,
            clients=self._clients,
            lease_ttl=self._lease_ttl,
            machines=self._machines,
            copy_metrics=self._copy_metrics,
            judge=self._judge,
        )
        task = asyncio.create_task(controller.run(), name=f"controller-{experiment_id}")
        task.add_done_callback(self._ended)
        self._tasks[experiment_id] = task

    async def stop(self) -> None:
        """Leads no experiment any more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        for experiment_id, known in list(self._tasks.items()):
            if known is task:
                del self._tasks[experiment_id]
                if experiment_id in self._asked_again and not task.cancelled():
                    self._asked_again.remove(experiment_id)
                    self.adopt(experiment_id)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an experiment's controller failed", exc_info=task.exception())
