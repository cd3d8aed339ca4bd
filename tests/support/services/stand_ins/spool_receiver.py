"""A receiver of spools that fails where a test says, and senders to it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from resolute import errors
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery

IDENTITY = RunIdentity(
    trial_id="trial", run=1, experiment_id="experiment", searcher_metric="loss", time_metric=""
)


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def take_all(_: searcher.ReportValidationsRequest) -> searcher.ReportValidationsResponse:
    return searcher.ReportValidationsResponse()


class Receiver:
    """Takes batches by the rules of the contract, and fails when told to.

    It stands for the metrics service where faults must hit at exact places; the wire tests use the real one.
    """

    def __init__(self) -> None:
        self.next: dict[str, int] = {}
        self.rows: dict[str, list[tuple[str, int, dict[str, float]]]] = {}
        self.calls = 0
        self.fail_before: Callable[[], Exception | None] = lambda: None
        self.fail_after: Callable[[], Exception | None] = lambda: None
        self.refuse: Callable[[dict[str, float]], str] = lambda _: ""
        self.take_at_most = 10**9

    def ingest(self, request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        self.calls += 1
        if (failure := self.fail_before()) is not None:
            raise failure
        expected = self.next.get(request.source, 0)
        if request.first_sequence > expected:
            raise errors.FailedPreconditionError("a gap", metadata={"expected_sequence": str(expected)})
        refusals = []
        end = min(request.first_sequence + request.count, expected + self.take_at_most)
        for sequence, group, steps, values in sorted(unpack(request), key=lambda row: row[0]):
            if expected <= sequence < end:
                if message := self.refuse(values):
                    refusals.append(metrics.IngestReportsResponse.Refusal(sequence=sequence, message=message))
                else:
                    self.rows.setdefault(request.source, []).append((group, steps, values))
        self.next[request.source] = max(expected, end)
        if (failure := self.fail_after()) is not None:
            raise failure
        return metrics.IngestReportsResponse(next_sequence=self.next[request.source], refusals=refusals)

    def all_rows(self) -> list[tuple[str, int, dict[str, float]]]:
        return [row for source in sorted(self.rows) for row in self.rows[source]]


def unpack(request: metrics.IngestReportsRequest) -> Iterator[tuple[int, str, int, dict[str, Any]]]:
    for block in request.blocks:
        width = len(block.names)
        for index, sequence in enumerate(block.sequences):
            row = block.values[index * width : (index + 1) * width]
            values: dict[str, Any] = dict(zip(block.names, row, strict=True))
            for extra in block.extras:
                if extra.row == index:
                    values |= {name: value.string_value for name, value in extra.values.items()}
            yield sequence, block.group, block.steps[index], values


def sender_to(receiver: Receiver, directory: Path, clock: Clock, **changes: Any) -> SpoolSender:
    delivery = ReportDelivery(IDENTITY, ingest=receiver.ingest, validate=changes.pop("validate", take_all))
    return SpoolSender(directory, delivery, clock=clock, jitter=lambda: 0.5)


def pump_all(sender: SpoolSender, clock: Clock, limit: int = 10_000) -> None:
    for _ in range(limit):
        if not sender.pump():
            if sender.drained():
                return
            # A spool that met a defect waits by itself.
            clock.now += max(sender.seconds_until_retry, 1.0)
    raise AssertionError("the sender does not come to an end")
