"""Streams that are opened again where they broke off."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from resolute.client.connection.resumed_stream import ResumedStream
from resolute.errors import NotFoundError, UnauthenticatedError, UnavailableError


class Scripted:
    """One opening of a stream: some messages, then an error or an end."""

    def __init__(self, *items: int | Exception) -> None:
        self._items = items
        self.cancelled = False

    def __iter__(self) -> Iterator[int]:
        for item in self._items:
            if isinstance(item, Exception):
                raise item
            yield item

    def cancel(self) -> None:
        self.cancelled = True


class Ticking:
    """A clock that continues by a second whenever it is asked."""

    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


def opener(*streams: Scripted) -> Callable[[], Scripted]:
    return iter(streams).__next__


def test_a_stream_goes_on_where_it_broke_off() -> None:
    broken = Scripted(1, 2, UnavailableError("gone"))
    stream = ResumedStream[int](opener(broken, Scripted(UnavailableError("still")), Scripted(3)))
    assert list(stream) == [1, 2, 3]


def test_a_cluster_that_was_never_there_is_an_error_at_once() -> None:
    with pytest.raises(UnavailableError, match="down"):
        list(ResumedStream[int](opener(Scripted(UnavailableError("down")))))


def test_a_stream_whose_token_expired_is_opened_once_with_the_next() -> None:
    expired = UnauthenticatedError("the token has expired")
    stream = ResumedStream[int](opener(Scripted(1, expired), Scripted(2, expired), Scripted(3)))
    assert list(stream) == [1, 2, 3]
    refused = ResumedStream[int](opener(Scripted(1, expired), Scripted(expired), Scripted(2)))
    with pytest.raises(UnauthenticatedError):
        list(refused)


def test_an_interruption_longer_than_the_outage_timeout_is_an_error() -> None:
    streams = [Scripted(1, UnavailableError("gone")), *[Scripted(UnavailableError("gone")) for _ in range(9)]]
    stream = ResumedStream[int](opener(*streams), outage_timeout=2.0, clock=Ticking())
    with pytest.raises(UnavailableError, match="gone"):
        list(stream)


def test_other_errors_are_not_waited_for() -> None:
    with pytest.raises(NotFoundError):
        list(ResumedStream[int](opener(Scripted(1, NotFoundError("deleted")))))


def test_an_end_that_was_none_is_an_interruption() -> None:
    ends = iter([False, True])
    stream = ResumedStream[int](opener(Scripted(1), Scripted(2)), finished=lambda: next(ends))
    assert list(stream) == [1, 2]


def test_a_cancelled_stream_ends_quietly() -> None:
    first = Scripted(1, UnavailableError("cancelled"))
    stream = ResumedStream[int](opener(first))
    for _ in stream:
        stream.cancel()
    assert first.cancelled
    assert list(stream) == []
