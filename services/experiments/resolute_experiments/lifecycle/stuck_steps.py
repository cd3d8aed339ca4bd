"""The warning that an experiment is stuck because a step of its controller fails repeatedly."""

from __future__ import annotations

from functools import partial

import structlog
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from resolute.contracts.clock import Clock
from resolute.errors import InternalError, ResoluteError
from resolute_experiments.store import experiments
from resolute_experiments.topics import Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier

SHOWN_AFTER_SECONDS = 20.0
"""For so long steps must have failed: another service that starts again is no news."""
MOST_DEFECTS = 10
"""So many times in a row a search is not created because of a defect, such as of a method's plugin."""
_BEGINNING = "it does not go on, and the server tries again: "
_LONGEST = 500
_log = structlog.get_logger("controller")


class StuckSteps:
    """Sets the warning of one experiment while its steps fail, and removes it when one succeeds.

    Args:
        experiment_id: UUID of the experiment.
        database: This service's database.
        notifier: Notified of changes.
        clock: Measures how long steps have failed.
    """

    def __init__(
        self, experiment_id: str, *, database: Database, notifier: Notifier[Topic], clock: Clock
    ) -> None:
        self._id = experiment_id
        self._database = database
        self._notifier = notifier
        self._clock = clock
        self._failing_since: dict[str, float] = {}
        # Unknown until the first success: the warning may be of this service before it was started again.
        self._shown: str | None = None
        self._defects = 0

    def is_hopeless(self, failure: InternalError) -> bool:
        """Counts a defect that kept the search from being created; says whether it was tried often enough."""
        self._defects += 1
        _log.warning("a search is not created", experiment=self._id, reason=str(failure), time=self._defects)
        return self._defects >= MOST_DEFECTS

    async def failed(self, failure: Exception, *, task: str) -> None:
        """Shows why a step failed, once those of its task have failed for a while.

        Args:
            failure: What the step raised.
            task: Names the task of the controller whose steps come one after another.
        """
        now = self._clock.monotonic()
        if now - self._failing_since.setdefault(task, now) < SHOWN_AFTER_SECONDS:
            return
        reason = (
            str(failure) if isinstance(failure, ResoluteError) else f"{type(failure).__name__}: {failure}"
        )
        warning = f"{_BEGINNING}{reason}"[:_LONGEST]
        if warning != self._shown:
            await self._show(warning)

    async def succeeded(self, *, task: str) -> None:
        """Removes the warning, unless another task fails or the warning was replaced.

        Args:
            task: The task of which a step succeeded.
        """
        self._failing_since.pop(task, None)
        if not self._failing_since and self._shown != "":
            await self._show("")

    async def _show(self, warning: str) -> None:
        try:
            changed = await self._database.write(partial(self._write, warning=warning))
        except (ResoluteError, SQLAlchemyError) as error:
            # The database may be what fails; then it cannot be read, either.
            _log.info("the warning of failing steps is not written", experiment=self._id, reason=str(error))
            return
        self._shown = warning
        if changed:
            self._notifier.notify(watched(self._id))

    def _write(self, connection: Connection, *, warning: str) -> bool:
        current = experiments.get(connection, experiment_id=self._id).warning
        if current == warning or not (warning or current.startswith(_BEGINNING)):
            return False
        experiments.update(connection, self._id, warning=warning)
        return True
