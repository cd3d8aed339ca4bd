"""Requests are read within their bounds, and without values that no service can use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from support.calls.contract_methods import methods, path

from resolute.api.common.v1 import value_pb2
from resolute.api.experiments.v1 import access_service_pb2 as access
from resolute.api.experiments.v1 import allocations_service_pb2 as allocations
from resolute.api.experiments.v1 import experiments_service_pb2 as experiments
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_serving.bounds.limits import LIMITS, RequestLimits
from resolute_serving.bounds.requests import RequestReader, read_message

LIMIT = RequestLimits(message_bytes=100_000, elements=100, stream_bytes=1000)


def read(message: Message, limits: RequestLimits = LIMIT) -> Message:
    result: Message = read_message(message.SerializeToString(), type(message).FromString, limits)
    return result


def test_bounds_are_of_calls_that_exist() -> None:
    assert set(LIMITS) <= {path(method) for method in methods()}


def test_a_request_within_its_bounds_is_read_as_it_was_sent() -> None:
    request = experiments.ListExperimentsRequest(labels=["a"] * 99, name_contains="é")
    assert read(request) == request


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (experiments.ListExperimentsRequest(labels=["a"] * 101), "more than 100 elements at labels"),
        (value_pb2.Value(string_value="x" * 100_001), "takes at most 100000"),
        (to_value({"a": [[1] * 60, [2] * 60]}), "more than 100 elements"),
        (experiments.ListExperimentsRequest(name_contains="a\0"), "name_contains holds a NUL"),
        (experiments.ListExperimentsRequest(labels=["a", "\0"]), r"labels\[1\] holds a NUL"),
        (searcher.PollEventsRequest(max_wait=Duration(seconds=2**62)), "max_wait is .* must be a duration"),
        (searcher.PollEventsRequest(max_wait=Duration(seconds=1, nanos=-1)), "must be a duration"),
        (access.ListAuditRowsRequest(start_time=Timestamp(seconds=-(2**62))), "must be a time in the years"),
        (access.ListAuditRowsRequest(start_time=Timestamp(nanos=-1)), "must be a time in the years"),
        (access.CreateUserRequest(role=99), "role is 99, which is no UserRole"),  # type: ignore[arg-type]
        (access.ListUsersRequest(roles=[1, 99]), "roles is 99"),  # type: ignore[list-item]
    ],
)
def test_what_no_service_can_use_is_refused_with_its_place(request_: Message, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read(request_)


@pytest.mark.parametrize("data", [b"\x0a\xff", b"\x0a\x03\xed\xa0\x80"])
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_message(data, access.LoginRequest.FromString, LIMIT)


def test_data_of_users_may_hold_a_nul_character() -> None:
    data = to_value({"a\0": ["\0", {"b": "c\0"}]})
    assert read(data) == data


def test_what_failing_programs_and_trials_wrote_is_taken() -> None:
    ended = read(allocations.ReportExitRequest(failure="a\0b", exit_code=1))
    assert isinstance(ended, allocations.ReportExitRequest)
    assert ended.failure == "a\ufffdb"
    lines = logs.IngestLinesRequest(
        lines=line_pb2.LineColumns(messages=["\0"], levels=[99])  # type: ignore[list-item]
    )
    assert read(lines) == lines


def test_a_server_holds_no_more_than_it_may() -> None:
    reader = RequestReader(max_bytes=100)
    with reader.admit(1000), pytest.raises(UnavailableError, match="try again"), reader.admit(1):
        pass
    with reader.admit(60), reader.admit(40):
        pass


def test_a_client_stream_has_bounds_of_its_own_and_counts_while_it_lasts() -> None:
    async def chunks(sizes: list[int]) -> AsyncIterator[bytes]:
        for size in sizes:
            yield experiments.CreateExperimentInChunksRequest(chunk=b"x" * size).SerializeToString()

    async def scenario() -> None:
        reader = RequestReader(max_bytes=700)
        kind = experiments.CreateExperimentInChunksRequest
        got = [len(m.chunk) async for m in reader.stream(chunks([300, 300]), kind.FromString, LIMIT)]
        assert got == [300, 300]
        with pytest.raises(InvalidArgumentError, match="more than 1000 bytes"):
            async for _ in reader.stream(chunks([300] * 4), kind.FromString, LIMIT):
                pass
        first = reader.stream(chunks([600]), kind.FromString, LIMIT)
        await anext(first)
        with pytest.raises(UnavailableError):
            async for _ in reader.stream(chunks([300]), kind.FromString, LIMIT):
                pass
        await first.aclose()
        with reader.admit(700):
            pass

    asyncio.run(scenario())
