"""The loop of every stream that sends the state of some objects, and then each of their changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable, Iterable, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from resolute.contracts.clock import Clock
from resolute.errors import UnavailableError
from resolute_serving.context import User, current_principal
from resolute_serving.notifier import Notifier

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q")
R = TypeVar("R")
S = TypeVar("S")
_END = object()


@dataclass(frozen=True, kw_only=True)
class PollIntervals:
    """The intervals in seconds at which a stream polls its objects and sends heartbeats."""

    recheck: float = 1.0
    """After which it looks unasked, for what another replica stored."""
    heartbeat: float = 15.0
    """After which it shows that it lives when nothing came."""
    pause: float = 0.0
    """Between a look that found something and the next, however often objects change."""

    @classmethod
    def on(cls, database_url: str) -> PollIntervals:
        """The intervals for a database: an SQLite file has no other replica, so rechecks are for safety."""
        return cls(recheck=10.0) if database_url.startswith("sqlite") else cls()

    def for_many(self, count: int) -> PollIntervals:
        """The intervals for ``count`` objects that are read one by one: many are looked at less often."""
        return replace(self, recheck=min(self.recheck * max(1.0, count / 50), self.heartbeat))


@dataclass
class Turn(Generic[S]):
    """One poll of the objects of a stream that may have changed."""

    due: Sequence[S]
    """The objects to look at."""
    unread: list[S] = field(default_factory=list)
    """Those of them of which more can be read at once; the look adds them."""
    finished: list[S] = field(default_factory=list)
    """Those that are not followed any longer; the look adds them."""


async def follow(
    objects: Sequence[S],
    look: Callable[[Turn[S]], AsyncGenerator[R, None]],
    *,
    topics: Callable[[S], Iterable[K]],
    notifier: Notifier[K],
    clock: Clock,
    pace: PollIntervals,
    quiet: Q,
    on_stop: str = "",
) -> AsyncGenerator[R | Q, None]:
    """Looks at objects whenever they may have changed, until none is left to follow.

    Args:
        objects: What is followed.
        look: Yields what is new of the objects that are due since the look before.
        topics: Which notifications tell of changes of an object.
        notifier: Tells when to look, and when to end.
        clock: Measures heartbeats.
        pace: How often it looks without a notification.
        quiet: What it yields to show that it lives while nothing is new.
        on_stop: What to tell the client when the service stops; by default the stream just ends.

    It ends when every object is finished, or when the service stops.

    Yields:
        What the looks yield, and ``quiet`` from time to time.

    Raises:
        UnavailableError: The service stops, and ``on_stop`` is given.
    """
    left, turn = list(objects), Turn(objects)
    checked_at = sent_at = clock.monotonic()
    with notifier.subscribe(*{topic for each in objects for topic in topics(each)}) as changes:
        while not notifier.closed:
            sent = False
            async with aclosing(look(turn)) as news:
                while (each := await _next(news, turns=notifier.turns)) is not _END:
                    sent, sent_at = True, clock.monotonic()
                    yield cast("R", each)
            if clock.monotonic() - sent_at >= pace.heartbeat:
                sent_at = clock.monotonic()
                yield quiet
            finished, unread = _ids(turn.finished), _ids(turn.unread)
            left = [each for each in left if id(each) not in finished]
            if not left:
                return
            if sent and pace.pause:
                await asyncio.sleep(pace.pause)
            changed = await changes.wait(0 if unread else pace.recheck)
            if unread or (changed and clock.monotonic() - checked_at < pace.recheck):
                turn = Turn(
                    [each for each in left if id(each) in unread or not changed.isdisjoint(topics(each))]
                )
            else:
                turn, checked_at = Turn(left), clock.monotonic()
    if on_stop:
        raise UnavailableError(on_stop)


async def _next(news: AsyncGenerator[R, None], *, turns: asyncio.Semaphore) -> R | object:
    """What a look finds next; ``_END`` after the last. The turn does not last while a client reads it."""
    # Signals of runs do not wait for what people watch.
    async with turns if isinstance(current_principal.get(), User) else nullcontext():
        return await anext(news, _END)


def _ids(objects: Sequence[object]) -> set[int]:
    return {id(each) for each in objects}
