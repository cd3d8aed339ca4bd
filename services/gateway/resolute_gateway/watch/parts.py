"""The parts of a merged watch: each is a watch of one service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from resolute.api.experiments.v1 import experiments_service_pb2
from resolute.api.gateway.v1 import gateway_service_pb2 as pb
from resolute.api.logs.v1 import logs_service_pb2
from resolute.api.metrics.v1 import metrics_service_pb2
from resolute.api.searcher.v1 import searcher_service_pb2


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of news."""

    field: str
    """Its field in requests and in responses."""
    kind: pb.Part.ValueType
    """Its name in the contract."""
    path: str
    """The call that gives it."""
    response: Any
    """The message that this call answers with."""

    def wrapped(self, response: Any) -> pb.WatchResponse:
        """An answer of the service as one of the merged watch; without a key it only shows life."""
        if not response.key:
            return pb.WatchResponse()
        return pb.WatchResponse(**{self.field: response})


PARTS: Sequence[Part] = (
    Part(
        field="experiments",
        kind=pb.PART_EXPERIMENTS,
        path="/resolute.api.experiments.v1.ExperimentsService/WatchExperiments",
        response=experiments_service_pb2.WatchExperimentsResponse,
    ),
    Part(
        field="searches",
        kind=pb.PART_SEARCHES,
        path="/resolute.api.searcher.v1.SearcherService/WatchSearches",
        response=searcher_service_pb2.WatchSearchesResponse,
    ),
    Part(
        field="series",
        kind=pb.PART_SERIES,
        path="/resolute.api.metrics.v1.MetricsService/WatchSeries",
        response=metrics_service_pb2.WatchSeriesResponse,
    ),
    Part(
        field="lines",
        kind=pb.PART_LINES,
        path="/resolute.api.logs.v1.LogsService/FollowLines",
        response=logs_service_pb2.FollowLinesResponse,
    ),
)


def parts_of(request: pb.WatchRequest) -> Iterator[tuple[Part, Any]]:
    """Yields the parts that a request asks for, each with the request of its service."""
    for part in PARTS:
        if request.HasField(part.field):  # type: ignore[arg-type] # a field of the request by its name
            yield part, getattr(request, part.field)
