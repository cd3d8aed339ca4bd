"""Sends batches of a spool to the service that stores them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import grpc

from resolute.api.checkpoints.v1 import media_service_pb2 as media
from resolute.api.checkpoints.v1 import media_service_pb2_grpc as media_grpc
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.logs.v1 import logs_service_pb2_grpc as logs_grpc
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.api.searcher.v1 import searcher_service_pb2_grpc as searcher_grpc
from resolute.contracts.spool.format import LOGS_SUFFIX, MEDIA_SUFFIX, METRICS_SUFFIX
from resolute.errors import AbortedError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from resolute.spool.delivery.requests import (
    RunIdentity,
    lines_request,
    media_request,
    reports_request,
    validations_request,
)
from resolute.spool.reader import Chunk

INGEST_DEADLINE = 30.0
"""Seconds that one batch may take."""
_log = logging.getLogger("resolute.spool")


class Refusal(Protocol):
    """The answer of a service to one record that it refused."""

    @property
    def sequence(self) -> int:
        """The record's sequence in its spool."""

    @property
    def message(self) -> str:
        """What is wrong with it and what to do about it."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The answer of a service to a batch."""

    next_sequence: int
    """Everything below is durable."""
    refusals: Sequence[Refusal] = ()
    """The records that break a rule and are not stored."""


class Delivery(Protocol):
    """The delivery of one kind of spool to its service."""

    @property
    def suffix(self) -> str:
        """Ends the names of the spools."""

    def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
        """Packs consecutive records. What it returns sends them, from any thread.

        The same may be sent again, in whole or in part.
        """

    def skip(self, source: str, sequence: int) -> None:
        """Tells the service that one sequence will never come."""


class ReportDelivery:
    """Sends reports to the metrics service and, if validations drive the search, also to the searcher.

    Args:
        identity: The run that the reports belong to.
        ingest: ``MetricsService.IngestReports``.
        validate: ``SearcherService.ReportValidations``.
        dropped: Called with the number of the trial's reports that a limit has dropped, and with a text about
            it.
    """

    suffix = METRICS_SUFFIX

    def __init__(
        self,
        identity: RunIdentity,
        *,
        ingest: Callable[[metrics.IngestReportsRequest], metrics.IngestReportsResponse],
        validate: Callable[[searcher.ReportValidationsRequest], searcher.ReportValidationsResponse],
        dropped: Callable[[int, str], None] = lambda _count, _explanation: None,
    ) -> None:
        self._identity = identity
        self._dropped = dropped
        self._ingest = ingest
        self._validate = validate

    @classmethod
    def over(
        cls,
        channel: grpc.Channel,
        identity: RunIdentity,
        *,
        dropped: Callable[[int, str], None] = lambda _count, _explanation: None,
    ) -> ReportDelivery:
        """Sends over a channel of ``resolute.rpc``."""
        to_metrics = metrics_grpc.MetricsServiceStub(channel)
        to_searcher = searcher_grpc.SearcherServiceStub(channel)
        return cls(
            identity,
            ingest=lambda request: to_metrics.IngestReports(request, timeout=INGEST_DEADLINE),
            validate=lambda request: to_searcher.ReportValidations(request, timeout=INGEST_DEADLINE),
            dropped=dropped,
        )

    def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
        """Packs reports; they count as arrived once every service has them."""
        request = reports_request(self._identity, source=source, chunk=chunk)
        validations = validations_request(self._identity, source=source, chunk=chunk)

        def send() -> IngestResult:
            response = self._ingest(request)
            if response.HasField("dropped"):
                self._dropped(response.dropped.reports, response.dropped.explanation)
            refusals: list[Refusal] = list(response.refusals)
            if validations is not None:
                refusals += self._send_validations(validations)
            return IngestResult(response.next_sequence, refusals)

        return send

    def skip(self, source: str, sequence: int) -> None:
        """Sends an empty batch in the place of one report."""
        request = reports_request(self._identity, source=source, chunk=Chunk(sequence))
        request.count = 1
        self._ingest(request)

    def _send_validations(self, validations: searcher.ReportValidationsRequest) -> Sequence[Refusal]:
        """Sends validations to the search; returns those that it refused, which the script is to hear of."""
        try:
            return self._validate(validations).refusals
        except (AbortedError, NotFoundError, FailedPreconditionError, InvalidArgumentError) as failure:
            # The metrics service has the reports; a search that ended or takes a later run's decides without.
            _log.info("the search does not take validations of run %d: %s", self._identity.run, failure)
            return ()


class LineDelivery:
    """Sends lines to the logs service.

    Args:
        identity: The run that the lines belong to.
        ingest: ``LogsService.IngestLines``.
    """

    suffix = LOGS_SUFFIX

    def __init__(
        self,
        identity: RunIdentity,
        *,
        ingest: Callable[[logs.IngestLinesRequest], logs.IngestLinesResponse],
    ) -> None:
        self._identity = identity
        self._ingest = ingest

    @classmethod
    def over(cls, channel: grpc.Channel, identity: RunIdentity) -> LineDelivery:
        """Sends over a channel of ``resolute.rpc``."""
        stub = logs_grpc.LogsServiceStub(channel)
        return cls(identity, ingest=lambda request: stub.IngestLines(request, timeout=INGEST_DEADLINE))

    def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
        """Packs lines."""
        request = lines_request(self._identity, source=source, chunk=chunk)
        return lambda: IngestResult(self._ingest(request).next_sequence)

    def skip(self, source: str, sequence: int) -> None:
        """Sends a line that says so in the place of one that was not taken."""
        self._ingest(
            logs.IngestLinesRequest(
                trial_id=self._identity.trial_id,
                run=self._identity.run,
                source=source,
                experiment_id=self._identity.experiment_id,
                first_sequence=sequence,
                lines=line_pb2.LineColumns(
                    messages=["a line was dropped here: the logs service did not take it"],
                    times=[0],
                    levels=[line_pb2.LEVEL_UNSPECIFIED],
                    ranks=[-1],
                    writer_indexes=[0],
                    writers=[line_pb2.LineColumns.Writer()],
                ),
            )
        )


class MediaDelivery:
    """Sends media to the checkpoints service.

    Args:
        identity: The run that the media belong to, with the storage of their contents.
        ingest: ``MediaService.IngestMedia``.
        dropped: Called with the number of the trial's objects that a limit has dropped, and with a text about
            it.
    """

    suffix = MEDIA_SUFFIX

    def __init__(
        self,
        identity: RunIdentity,
        *,
        ingest: Callable[[media.IngestMediaRequest], media.IngestMediaResponse],
        dropped: Callable[[int, str], None],
    ) -> None:
        self._identity = identity
        self._ingest = ingest
        self._dropped = dropped

    @classmethod
    def over(
        cls, channel: grpc.Channel, identity: RunIdentity, *, dropped: Callable[[int, str], None]
    ) -> MediaDelivery:
        """Sends over a channel of ``resolute.rpc``."""
        stub = media_grpc.MediaServiceStub(channel)
        return cls(
            identity,
            ingest=lambda request: stub.IngestMedia(request, timeout=INGEST_DEADLINE),
            dropped=dropped,
        )

    def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
        """Packs media."""
        request = media_request(self._identity, source=source, chunk=chunk)

        def send() -> IngestResult:
            response = self._ingest(request)
            if response.HasField("dropped"):
                self._dropped(response.dropped.count, response.dropped.explanation)
            return IngestResult(response.next_sequence, response.refusals)

        return send

    def skip(self, source: str, sequence: int) -> None:
        """Sends an empty batch in the place of one object."""
        request = media_request(self._identity, source=source, chunk=Chunk(sequence))
        request.count = 1
        self._ingest(request)
