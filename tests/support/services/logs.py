"""Batches of lines for tests of the logs service, and the service without a network."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from support.databases.prepared import migrate

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute_logs.servicer import Servicer
from resolute_serving.database.engine import Database
from resolute_serving.following import PollIntervals
from resolute_serving.ingestion.byte_limits import ByteLimits

T = TypeVar("T")
LIMITS = ByteLimits(prefix="RESOLUTE_LOGS")
TIMEOUT_SECONDS = 60.0
"""Seconds that a test waits for something that must happen."""


def line(message: str, *, seconds: float = 0.0, **fields: Any) -> line_pb2.Line:
    """One line of a trial's output."""
    made = line_pb2.Line(message=message, **{"stdtype": "stdout", "origin": "task", **fields})
    made.time.FromNanoseconds(round(seconds * 1e9))
    return made


def columns(lines: Iterable[line_pb2.Line]) -> line_pb2.LineColumns:
    """Packs lines as a batch carries them, with a writer for each."""
    made = line_pb2.LineColumns()
    for index, one in enumerate(lines):
        made.messages.append(one.message)
        made.times.append(one.time.seconds * 1_000_000_000 + one.time.nanos)
        made.levels.append(one.level)
        made.ranks.append(one.rank if one.HasField("rank") else -1)
        made.writer_indexes.append(index)
        made.writers.add(stdtype=one.stdtype, origin=one.origin, container=one.container, agent=one.agent)
    return made


def following(*filters: line_pb2.LineFilter, after: int | None = None) -> api.FollowLinesRequest:
    """A request to follow logs; their keys are "0", "1" and so on."""
    request = api.FollowLinesRequest()
    for key, wanted in enumerate(filters):
        request.subscriptions.add(key=str(key), filter=wanted, after_line_id=after)
    return request


@dataclass
class Logs:
    """The service's handlers on a database of their own."""

    servicer: Servicer
    database: Database
    experiment: str = field(default_factory=lambda: str(uuid.uuid4()))
    trial: str = field(default_factory=lambda: str(uuid.uuid4()))

    def anew(self) -> Logs:
        """The same service with a trial and an experiment that it has never heard of."""
        return Logs(self.servicer, self.database)

    def call(self, method: str, request: Any) -> Any:
        """Calls a handler of one response."""
        return self.run(lambda: getattr(self.servicer, method)(request, None))

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Runs something in an event loop of its own, with a deadline."""

        async def bounded() -> T:
            return await asyncio.wait_for(work(), TIMEOUT_SECONDS)

        return asyncio.run(bounded())

    def request(
        self,
        lines: Sequence[line_pb2.Line | str],
        *,
        first: int = 0,
        run: int = 1,
        source: str = "logs",
        **keys: str,
    ) -> api.IngestLinesRequest:
        """Packs lines into a batch."""
        return api.IngestLinesRequest(
            trial_id=keys.get("trial", self.trial),
            run=run,
            source=source,
            experiment_id=keys.get("experiment", self.experiment),
            first_sequence=first,
            lines=columns(line(one) if isinstance(one, str) else one for one in lines),
        )

    def send(self, *lines: line_pb2.Line | str, **options: Any) -> int:
        """Sends lines as one batch; gives the next sequence."""
        next_sequence: int = self.call("IngestLines", self.request(lines, **options)).next_sequence
        return next_sequence

    def pages(
        self, *, page_size: int = 0, descending: bool = False, **wanted: Any
    ) -> list[list[line_pb2.Line]]:
        """All pages of matching lines."""
        pages = []
        token = ""
        while True:
            request = api.ListLinesRequest(
                filter=self.filter(**wanted),
                order_by="line_id desc" if descending else "",
                page_size=page_size,
                page_token=token,
            )
            response = self.call("ListLines", request)
            pages.append(list(response.lines))
            token = response.next_page_token
            if not token:
                return pages

    def messages(self, **options: Any) -> list[str]:
        """The texts of matching lines."""
        return [one.message for page in self.pages(**options) for one in page]

    def filter(self, **wanted: Any) -> line_pb2.LineFilter:
        """A filter for this trial; times are seconds."""
        times = {name: wanted.pop(name) for name in ("start_time", "end_time") if name in wanted}
        made = line_pb2.LineFilter(**{"trial_id": self.trial, **wanted})
        for name, seconds in times.items():
            getattr(made, name).FromNanoseconds(round(seconds * 1e9))
        return made

    def close_trial(self) -> None:
        """Says that the trial has ended."""
        self.call("CloseTrialLogs", api.CloseTrialLogsRequest(trial_id=self.trial))

    def delete(self) -> None:
        """Deletes the experiment."""
        self.call("DeleteExperimentLogs", api.DeleteExperimentLogsRequest(experiment_id=self.experiment))


@contextmanager
def logs_on(
    database_url: str,
    *,
    pace: PollIntervals | None = None,
    clock: Clock = SYSTEM_CLOCK,
    limits: ByteLimits = LIMITS,
) -> Iterator[Logs]:
    """The service's handlers on a fresh or an old database."""
    database = Database(database_url, name="logs")
    try:
        migrate(database.engine, package="resolute_logs", schema="logs")
        servicer = Servicer(database, limits=limits, clock=clock, pace=pace or PollIntervals())
        yield Logs(servicer, database)
    finally:
        database.close()
