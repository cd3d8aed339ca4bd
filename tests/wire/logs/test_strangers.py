"""Callers without a valid token, whose requests nobody reads, and page tokens that somebody made up."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.services.in_process import serving

import resolute_logs.blueprint
import resolute_metrics.blueprint
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs_api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics_api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.errors import InvalidArgumentError
from resolute_serving.bounds.requests import RequestReader
from resolute_serving.pagination import encode_token

METHOD = "/resolute.api.logs.v1.LogsService/IngestLines"
TRIAL = str(uuid.UUID(int=7))


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer made.up.token"),)])
def test_a_refused_call_of_four_megabytes_is_not_read(
    metadata: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr(RequestReader, "read", lambda *arguments: read.append(arguments))

    async def body() -> None:
        async with serving([resolute_logs.blueprint.BLUEPRINT], tmp_path) as running:
            channel = grpc.aio.insecure_channel(running.address)
            call: Any = channel.unary_unary(METHOD)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(b"\xff" * (4 * 1024 * 1024 - 100), metadata=metadata)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            await channel.close()

    asyncio.run(body())
    assert read == []


POSITIONS: list[Any] = [-1, 2**70, 1.5, True, "\0", "\ud800", None, [], [None] * 5, ["\0", 1, 2, 3, 4], {}]
POSITIONS += [["a", {}, "b"], [["a"], "b", "c"], ["a", 2**70, 2, 3, 4], ["a", "b", "\ud800"]]


def test_no_page_token_makes_a_list_fail_inside(tmp_path: Path) -> None:
    lists: list[tuple[Any, str, Any]] = [
        (LogsServiceStub, "ListLines", logs_api.ListLinesRequest(filter=line_pb2.LineFilter(trial_id=TRIAL))),
        (MetricsServiceStub, "ListSummaries", metrics_api.ListSummariesRequest(trial_ids=[TRIAL])),
        (
            MetricsServiceStub,
            "ListSummaries",
            metrics_api.ListSummariesRequest(trial_ids=[TRIAL], order_by="min desc"),
        ),
        (MetricsServiceStub, "ListReports", metrics_api.ListReportsRequest(trial_id=TRIAL)),
    ]

    async def body() -> None:
        blueprints = [resolute_logs.blueprint.BLUEPRINT, resolute_metrics.blueprint.BLUEPRINT]
        async with serving(blueprints, tmp_path) as running:
            channel = running.channel(running.user_token())
            for stub, method, request in lists:
                for position in POSITIONS:
                    request.page_token = encode_token(request, position)
                    with pytest.raises(InvalidArgumentError, match="page_token"):
                        await getattr(stub(channel), method)(request)
            await channel.close()

    asyncio.run(body())
