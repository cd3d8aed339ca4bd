"""The progress of an experiment, and its expected end."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.engine import Connection

from resolute.api.searcher.v1 import search_pb2, searcher_service_pb2
from resolute.contracts.clock import Clock
from resolute_experiments.clients import Clients
from resolute_experiments.specs.trial_length import estimated_end
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial
from resolute_experiments.topics import Topic, watched
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier

_EVERY_SECONDS = 1.0
"""Between two looks at a search while trials run: short ones would cause many a second."""
_LEAST_PROGRESS = 0.001
_LEAST_CHANGE = 0.02
"""An estimate is written again when the time that is left changes by this share of it."""
_LEAST_RATE = 0.1
"""Like it, for the rate."""


@dataclass
class Pace:
    """The speed of progress while trials run. Time without running trials does not count."""

    seconds: float = 0.0
    gained: float = 0.0
    _progress: float | None = None
    _looked_at: float = 0.0

    def look(self, progress: float, *, now: float, running: bool) -> None:
        """Records the progress of a search at a time."""
        if self._progress is not None and running:
            self.seconds += now - self._looked_at
            self.gained += max(0.0, progress - self._progress)
        self._progress, self._looked_at = progress, now

    def seconds_left(self) -> float | None:
        """Seconds until the search is done at the speed so far; None before any progress."""
        if not self.gained or self._progress is None:
            return None
        return (1.0 - self._progress) * self.seconds / self.gained


class Progress:
    """Updates the progress of one experiment.

    Args:
        database: This service's database.
        clients: The other services.
        notifier: Notified of changes.
        clock: Clock for times, and for the interval of calls to the searcher while trials run.
    """

    def __init__(
        self, database: Database, *, clients: Clients, notifier: Notifier[Topic], clock: Clock
    ) -> None:
        self._database, self._clients, self._notifier, self._clock = database, clients, notifier, clock
        self._due = 0.0
        self._pace = Pace()

    async def refresh(self, experiment: Experiment, *, running: bool) -> None:
        """Asks the search, and writes what changed.

        Args:
            experiment: An active experiment, whose search was created.
            running: Whether trials of it run.

        Raises:
            NotFoundError: The search is gone.
        """
        now = self._clock.monotonic()
        if running and now < self._due:
            return  # a later step looks: while trials run there is one every few seconds
        self._due = now + _EVERY_SECONDS
        request = searcher_service_pb2.GetSearchRequest(search_id=experiment.id)
        search = (await self._clients.searcher.GetSearch(request)).search.status
        # A search that is over counts as done, however it went; the end of the experiment says what it was.
        if search.state != search_pb2.SEARCH_STATE_ACTIVE:
            return
        self._pace.look(search.progress, now=now, running=running)
        rate = end = None
        if running:
            rate, only = await self._database.read(lambda c: _read_running(c, experiment))
            end = self._end(experiment, only)
        moved = abs(search.progress - experiment.progress) >= _LEAST_PROGRESS
        if (
            moved
            or self._differs(experiment.estimated_end_at, end)
            or _moved(experiment.steps_per_second, rate)
        ):
            values = {"progress": search.progress, "estimated_end_at": end, "steps_per_second": rate}
            await self._database.write(lambda c: experiments.update(c, experiment.id, **values))
            self._notifier.notify(watched(experiment.id))

    def _end(self, experiment: Experiment, only: Trial | None) -> float | None:
        """Estimates when it will be done: by the steps of its only trial, else by its progress."""
        if only is not None and (end := estimated_end(only, experiment.config)) is not None:
            return end
        left = self._pace.seconds_left()
        return None if left is None else self._clock.time() + left

    def _differs(self, known: float | None, end: float | None) -> bool:
        if known is None or end is None:
            return known is not end
        return abs(end - known) > max(1.0, _LEAST_CHANGE * (end - self._clock.time()))


def _read_running(connection: Connection, experiment: Experiment) -> tuple[float | None, Trial | None]:
    """The rate of the trials that train, and the trial of an experiment that has only one."""
    single = experiment.config["searcher"]["name"] == "single"
    only = next(iter(trials.unfinished(connection, experiment.id)), None) if single else None
    return trials.training_rate(connection, experiment.id), only


def _moved(known: float | None, rate: float | None) -> bool:
    if known is None or rate is None:
        return known is not rate
    return abs(rate - known) > _LEAST_RATE * known
