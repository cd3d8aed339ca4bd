"""Imports of objects from other clusters. Every call may be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from resolute.api.checkpoints.v1 import (
    checkpoints_service_pb2,
    checkpoints_service_pb2_grpc,
    models_service_pb2,
    models_service_pb2_grpc,
)
from resolute.api.experiments.v1 import imports_service_pb2, imports_service_pb2_grpc
from resolute.api.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from resolute.api.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from resolute.client.connection.session import Session
from resolute.contracts.calls.backoff import Backoff, retry

_PART_BYTES = 1024 * 1024
_UPLOAD_BASE = 60.0
_SLOWEST_UPLOAD = 128 * 1024  # bytes a second
_UPLOAD_ATTEMPTS = 3
_BATCH_BYTES = 2 * 1024 * 1024
_T = TypeVar("_T")


class Imports:
    """Calls of the imports service. They take messages of the contract, because an import sets every field.

    Args:
        session: The connection.
    """

    def __init__(self, session: Session) -> None:
        self._imports = session.stub(imports_service_pb2_grpc.ImportsServiceStub)
        self._checkpoints = session.stub(checkpoints_service_pb2_grpc.CheckpointsServiceStub)
        self._models = session.stub(models_service_pb2_grpc.ModelsServiceStub)
        self._metrics = session.stub(metrics_service_pb2_grpc.MetricsServiceStub)
        self._logs = session.stub(logs_service_pb2_grpc.LogsServiceStub)

    def experiment(
        self, request: imports_service_pb2.ImportExperimentRequest, definition: bytes
    ) -> imports_service_pb2.ImportExperimentResponse:
        """Creates an experiment.

        Args:
            request: The experiment, without its model definition.
            definition: The model definition; empty for none.
        """

        def parts() -> Iterator[imports_service_pb2.ImportExperimentRequest]:
            yield request
            for start in range(0, len(definition), _PART_BYTES):
                part = definition[start : start + _PART_BYTES]
                yield imports_service_pb2.ImportExperimentRequest(model_definition=part)

        # A stream of requests is not repeated by itself.
        timeout = _UPLOAD_BASE + len(definition) / _SLOWEST_UPLOAD
        return retry(
            lambda: self._imports.ImportExperiment(parts(), timeout=timeout),
            backoff=Backoff(),
            attempts=_UPLOAD_ATTEMPTS,
        )

    def trials(
        self, experiment_id: str, trials: Sequence[imports_service_pb2.ImportedTrial]
    ) -> imports_service_pb2.ImportTrialsResponse:
        """Creates trials of an imported experiment."""
        request = imports_service_pb2.ImportTrialsRequest(experiment_id=experiment_id, trials=trials)
        return self._imports.ImportTrials(request)

    def finish(self, experiment_id: str) -> None:
        """Says that an experiment is whole."""
        self._imports.FinishImport(imports_service_pb2.FinishImportRequest(experiment_id=experiment_id))

    def find(
        self, request: imports_service_pb2.ListImportedRequest
    ) -> Sequence[imports_service_pb2.ListImportedResponse.Found]:
        """Finds what had a number on another cluster."""
        return self._imports.ListImported(request).found

    def checkpoints(self, request: checkpoints_service_pb2.ImportCheckpointsRequest) -> int:
        """Registers checkpoints; returns how many are new."""
        return self._checkpoints.ImportCheckpoints(request).new_count

    def model(self, request: models_service_pb2.ImportModelRequest) -> None:
        """Takes over a model."""
        self._models.ImportModel(request)

    def reports(
        self, request: metrics_service_pb2.IngestReportsRequest
    ) -> metrics_service_pb2.IngestReportsResponse:
        """Stores reports."""
        return self._metrics.IngestReports(request)

    def lines(self, request: logs_service_pb2.IngestLinesRequest) -> None:
        """Stores lines."""
        self._logs.IngestLines(request)


def batches(
    items: Iterable[_T], *, most: int, size: Callable[[_T], int] = lambda _item: 0
) -> Iterator[list[_T]]:
    """Divides a list, in its order, into batches that fit into one request each.

    Args:
        items: The things.
        most: How many a batch has at most.
        size: About how many bytes one takes; a batch has 2 MiB at most, or one thing.
    """
    batch: list[_T] = []
    total = 0
    for item in items:
        bytes_ = size(item)
        if batch and (len(batch) >= most or total + bytes_ > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += bytes_
    if batch:
        yield batch
