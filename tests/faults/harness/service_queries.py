"""What the harness asks the services of an embedded cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from support.clusters.embedded import EmbeddedCluster

from resolute.api.checkpoints.v1 import checkpoint_pb2, checkpoints_service_pb2, checkpoints_service_pb2_grpc
from resolute.api.experiments.v1 import cluster_service_pb2, cluster_service_pb2_grpc
from resolute.api.logs.v1 import line_pb2, logs_service_pb2, logs_service_pb2_grpc
from resolute.api.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc, report_pb2
from resolute.api.searcher.v1 import event_pb2, search_pb2, searcher_service_pb2, searcher_service_pb2_grpc
from resolute.contracts.files.digests import hasher_for
from resolute.errors import DataLossError, NotFoundError, UnavailableError
from resolute.rpc.channel import open_channel

_PAGE = 1000
_REPLAY_SECONDS = 60.0
_READ_SECONDS = 60.0


@contextmanager
def channel_to(cluster: EmbeddedCluster) -> Iterator[grpc.Channel]:
    """A channel that speaks for the operator, to the address at which the home was served last.

    Raises:
        UnavailableError: It is not served any more.
    """
    try:
        content = json.loads((cluster.home / "endpoint.json").read_text())
    except FileNotFoundError as error:
        raise UnavailableError(f"no process serves {cluster.home}") from error
    # Read for every call: a control plane that starts again may have written another.
    token = Path(content["token_path"])
    with open_channel(content["address"], token=lambda: token.read_text().strip()) as channel:
        yield channel


def address_of(cluster: EmbeddedCluster) -> str:
    """Where a cluster that is up listens."""
    return str(json.loads((cluster.home / "endpoint.json").read_text())["address"])


def problems_of(channel: grpc.Channel) -> list[str]:
    """What keeps the cluster from working, in its own words."""
    stub = cluster_service_pb2_grpc.ClusterServiceStub(channel)
    return list(stub.GetCluster(cluster_service_pb2.GetClusterRequest()).problems)


def search(channel: grpc.Channel, search_id: str) -> search_pb2.Search:
    """The state of a search."""
    stub = searcher_service_pb2_grpc.SearcherServiceStub(channel)
    return stub.GetSearch(searcher_service_pb2.GetSearchRequest(search_id=search_id)).search


def replay(channel: grpc.Channel, search_id: str) -> searcher_service_pb2.ReplaySearchResponse:
    """Decides the log of a search again."""
    stub = searcher_service_pb2_grpc.SearcherServiceStub(channel)
    return stub.ReplaySearch(
        searcher_service_pb2.ReplaySearchRequest(search_id=search_id), timeout=_REPLAY_SECONDS
    )


def log_of(channel: grpc.Channel, search_id: str) -> list[event_pb2.LogEntry]:
    """The log of a search."""
    stub = searcher_service_pb2_grpc.SearcherServiceStub(channel)
    entries: list[event_pb2.LogEntry] = []
    token = ""
    while True:
        request = searcher_service_pb2.ListEventsRequest(
            search_id=search_id, page_size=_PAGE, page_token=token
        )
        response = stub.ListEvents(request)
        entries += response.entries
        token = response.next_page_token
        if not token:
            return entries


def reports_of(channel: grpc.Channel, trial_id: str) -> list[report_pb2.Report]:
    """Every report of a trial, those of superseded runs too."""
    stub = metrics_service_pb2_grpc.MetricsServiceStub(channel)
    reports: list[report_pb2.Report] = []
    token = ""
    while True:
        request = metrics_service_pb2.ListReportsRequest(
            trial_id=trial_id, page_size=_PAGE, page_token=token, include_superseded=True
        )
        response = stub.ListReports(request)
        reports += response.reports
        token = response.next_page_token
        if not token:
            return reports


def lines_of(channel: grpc.Channel, trial_id: str) -> list[line_pb2.Line]:
    """Every line of a trial."""
    stub = logs_service_pb2_grpc.LogsServiceStub(channel)
    lines: list[line_pb2.Line] = []
    token = ""
    while True:
        request = logs_service_pb2.ListLinesRequest(
            filter=line_pb2.LineFilter(trial_id=trial_id), page_size=_PAGE, page_token=token
        )
        response = stub.ListLines(request)
        lines += response.lines
        token = response.next_page_token
        if not token:
            return lines


def checkpoints_of(channel: grpc.Channel, experiment_id: str) -> list[checkpoint_pb2.Checkpoint]:
    """Every checkpoint of an experiment that anyone can see."""
    stub = checkpoints_service_pb2_grpc.CheckpointsServiceStub(channel)
    found: list[checkpoint_pb2.Checkpoint] = []
    token = ""
    while True:
        request = checkpoints_service_pb2.ListCheckpointsRequest(
            experiment_ids=[experiment_id], page_size=_PAGE, page_token=token
        )
        response = stub.ListCheckpoints(request)
        found += response.checkpoints
        token = response.next_page_token
        if not token:
            return found


def content_of(channel: grpc.Channel, checkpoint_id: str, file: checkpoint_pb2.File) -> bytes | None:
    """Reads a file of a checkpoint, wherever it is stored; None if it is not what was committed."""
    if file.path.endswith("/"):
        return b""
    stub = checkpoints_service_pb2_grpc.CheckpointsServiceStub(channel)
    request = checkpoints_service_pb2.ReadFileRequest(checkpoint_id=checkpoint_id, path=file.path)
    try:
        content = b"".join(response.data for response in stub.ReadFile(request, timeout=_READ_SECONDS))
    except (NotFoundError, DataLossError):
        return None
    hasher = hasher_for(file.digest)
    if hasher is not None:
        hasher.update(content)
        if hasher.hexdigest() != file.digest.partition(":")[2]:
            return None
    return content if len(content) == file.size else None
