"""Parses the subscriptions of a client that follows logs."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute_logs.queries.filters import parse_filter
from resolute_logs.queries.following import FollowRequest
from resolute_serving.subscriptions import check_keys
from resolute_serving.validation import invalid


def parse_subscriptions(request: api.FollowLinesRequest) -> list[FollowRequest]:
    """Converts the subscriptions of a request.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    check_keys(request.subscriptions)
    return list(_parse(request))


def _parse(request: api.FollowLinesRequest) -> Iterator[FollowRequest]:
    for index, one in enumerate(request.subscriptions):
        field = f"subscriptions[{index}]"
        after = parse_position(one.after_line_id, field=f"{field}.after_line_id")
        yield FollowRequest(one.key, parse_filter(one.filter, field=f"{field}.filter"), after)


def parse_position(line_id: int, *, field: str) -> int:
    """Converts the number of a line.

    Args:
        line_id: The number.
        field: Names it in errors.

    Raises:
        InvalidArgumentError: It is negative.
    """
    if line_id < 0:
        raise invalid(field, f"{field.rpartition('.')[2]} is {line_id}; it must be zero or above")
    return line_id
