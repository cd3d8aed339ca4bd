"""Parses the subscriptions of a client that follows logs."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute_logs.queries.filters import parse_filter
from resolute_logs.queries.following import FollowRequest
from resolute_serving.subscriptions import check_keys
from resolute_serving.validation import invalid


def parse_subscriptions(request: api.FollowLinesRequest) -> list[FollowRequest]:
    """Reads the logs to follow.

    Raises:
        InvalidArgumentError: A field is wrong.
    """
    check_keys(request.subscriptions)
    return list(_parse(request))


def _parse(request: api.FollowLinesRequest) -> Iterator[FollowRequest]:
    for index, one in enumerate(request.subscriptions):
        field = f"subscriptions[{index}]"
        if one.after_line_id < 0:
            raise invalid(
                f"{field}.after_line_id", f"after_line_id is {one.after_line_id}; it must be zero or above"
            )
        yield FollowRequest(one.key, parse_filter(one.filter, field=f"{field}.filter"), one.after_line_id)
