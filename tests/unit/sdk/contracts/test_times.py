"""Moments as other systems write them."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from resolute.contracts.times import seconds_at

MOMENTS = (
    "2020-09-13T13:16:40Z",
    "2020-09-13T13:16:40.5Z",
    "2020-09-13T13:16:40.123456789Z",
    "2020-09-13T13:16:40.123+02:00",
    "2020-02-29T00:00:00-11:30",
    "9999-12-31T23:59:59.999999Z",
)


@pytest.mark.parametrize("text", MOMENTS)
def test_moments_are_read_as_protobuf_reads_them(text: str) -> None:
    moment = Timestamp()
    moment.FromJsonString(text)
    assert seconds_at(text) == moment.ToMicroseconds() / 1_000_000


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2020-13-01T00:00:00Z", "1960-01-01T00:00:00Z", "0001-01-01T00:00:00Z", None, 7]
)
def test_anything_else_is_zero(text: object) -> None:
    assert seconds_at(text) == 0.0
