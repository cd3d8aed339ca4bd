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
from resolute_serving.validation import invalid

MAX_VIEWS = 32
"""Further views of one request."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One kind of part, with its call and message."""

    field: str
    """Its field in requests and in responses."""
    kind: pb.Part.ValueType
    """Its name in the contract."""
    path: str
    """The call that gives it."""
    response: Any
    """The message that this call answers with."""

    def wrapped(self, response: Any, view: str) -> pb.WatchResponse:
        """An answer of the service as one of the merged watch; without a key it only shows life."""
        if not response.key:
            return pb.WatchResponse(view=view)
        return pb.WatchResponse(view=view, **{self.field: response})


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


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The request to one service."""

    part: Part
    """Which watch."""
    request: Any
    """The request of that watch."""
    view: str
    """Key of the view that wants it; empty for the request itself."""


def wanted_by(request: pb.WatchRequest) -> list[Wanted]:
    """What a request asks for, of each service and for each view.

    Raises:
        InvalidArgumentError: Views have no keys or the same, want nothing, or are too many.
    """
    if len(request.views) > MAX_VIEWS:
        raise invalid("views", f"there are {len(request.views)} views; at most {MAX_VIEWS} share a stream")
    if len({view.key for view in request.views} - {""}) < len(request.views):
        raise invalid("views", "each view needs a key that no other view has")
    wanted = list(_parts_of(request, ""))
    for view in request.views:
        parts = list(_parts_of(view, view.key))
        if not parts:
            raise invalid("views", f"the view {view.key[:80]!r} has no part; request at least one")
        wanted += parts
    if not wanted:
        raise invalid("experiments", "there is nothing to watch; ask for one part at least")
    return wanted


def _parts_of(request: pb.WatchRequest | pb.WatchRequest.View, view: str) -> Iterator[Wanted]:
    for part in PARTS:
        if request.HasField(part.field):  # type: ignore[arg-type] # a field of the request by its name
            yield Wanted(part=part, request=getattr(request, part.field), view=view)
