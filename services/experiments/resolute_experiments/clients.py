"""Clients of the other services."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from resolute.api.checkpoints.v1 import checkpoints_service_pb2 as checkpoints_pb2
from resolute.api.checkpoints.v1 import checkpoints_service_pb2_grpc as checkpoints_grpc
from resolute.api.logs.v1 import logs_service_pb2_grpc as logs_grpc
from resolute.api.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from resolute.api.searcher.v1 import searcher_service_pb2_grpc as searcher_grpc
from resolute_serving.server.channels.peers import Peers

if TYPE_CHECKING:
    from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceAsyncStub
    from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceAsyncStub
    from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceAsyncStub
    from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceAsyncStub


class Clients:
    """Stubs of the other services.

    Args:
        peers: Their channels.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    @cached_property
    def searcher(self) -> SearcherServiceAsyncStub:
        """Decides which trials run and how long."""
        stub = searcher_grpc.SearcherServiceStub(self._peers.channel("searcher"))
        return cast("SearcherServiceAsyncStub", stub)

    @cached_property
    def checkpoints(self) -> CheckpointsServiceAsyncStub:
        """Knows the checkpoints."""
        stub = checkpoints_grpc.CheckpointsServiceStub(self._peers.channel("checkpoints"))
        return cast("CheckpointsServiceAsyncStub", stub)

    async def make_workspace_directory(self, directory: str, workspace_id: int) -> str:
        """Makes the directory of a workspace in one for checkpoints, and returns its path."""
        request = checkpoints_pb2.MakeWorkspaceDirectoryRequest(
            directory=directory, workspace_id=workspace_id
        )
        return (await self.checkpoints.MakeWorkspaceDirectory(request)).directory

    @cached_property
    def metrics(self) -> MetricsServiceAsyncStub:
        """Knows the metrics."""
        stub = metrics_grpc.MetricsServiceStub(self._peers.channel("metrics"))
        return cast("MetricsServiceAsyncStub", stub)

    @cached_property
    def logs(self) -> LogsServiceAsyncStub:
        """Knows the logs."""
        stub = logs_grpc.LogsServiceStub(self._peers.channel("logs"))
        return cast("LogsServiceAsyncStub", stub)
