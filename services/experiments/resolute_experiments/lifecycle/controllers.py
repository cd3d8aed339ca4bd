"""The controllers of all live experiments, one for each, from its adoption until its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from resolute.contracts.tasks import end_tasks
from resolute_experiments.lifecycle.controller import ExperimentController
from resolute_experiments.topics import SCHEDULER_WAKEUP, SIGNAL_CHANGES, Topic
from resolute_serving.notifier import Notifier

_log = structlog.get_logger("experiments")


class Controllers:
    """The controllers of all live experiments.

    Args:
        notifier: Wakes the controllers.
        controller: Creates the controller of an experiment, given by its UUID.
    """

    def __init__(
        self, notifier: Notifier[Topic], *, controller: Callable[[str], ExperimentController]
    ) -> None:
        self._notifier = notifier
        self._controller = controller
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # Experiments that were to be led while somebody led them, and perhaps was about to stop.
        self._asked_again: set[str] = set()

    def adopt(self, experiment_id: str) -> None:
        """Begins to lead an experiment, unless that is done already."""
        current = self._tasks.get(experiment_id)
        if current is not None and not current.done():
            self._asked_again.add(experiment_id)
            self._notifier.notify(experiment_id, SCHEDULER_WAKEUP, SIGNAL_CHANGES)
            return
        controller = self._controller(experiment_id)
        task = asyncio.create_task(controller.run(), name=f"controller-{experiment_id}")
        task.add_done_callback(self._ended)
        self._tasks[experiment_id] = task

    async def stop(self) -> None:
        """Leads no experiment any more."""
        tasks = list(self._tasks.values())
        await end_tasks(*tasks)

    def _ended(self, task: asyncio.Task[None]) -> None:
        for experiment_id, known in list(self._tasks.items()):
            if known is task:
                del self._tasks[experiment_id]
                if experiment_id in self._asked_again and not task.cancelled():
                    self._asked_again.remove(experiment_id)
                    self.adopt(experiment_id)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an experiment's controller failed", exc_info=task.exception())
