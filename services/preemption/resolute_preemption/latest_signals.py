"""The last signal of every allocation, and streams of the signals that a watcher has not received.

Signals are level-triggered: a watcher gets the current signal if it is newer than the last one that it
received. Intermediate signals are not sent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from resolute.api.preemption.v1.signal_pb2 import Signal
from resolute.contracts.clock import Clock
from resolute_serving.following import PollIntervals, Turn, follow
from resolute_serving.notifier import Notifier


@dataclass(frozen=True)
class Subscription:
    """One allocation that a watcher follows."""

    key: str
    """Tells the watcher's subscriptions apart."""
    allocation_id: str
    """The allocation."""
    after_revision: int
    """Revision that the watcher has seen; zero for none."""


@dataclass(frozen=True)
class SignalChange:
    """A signal that a watcher has not received."""

    key: str
    """Key of the subscription."""
    signal: Signal
    """The signal."""


class LatestSignals:
    """The signals in memory, used by one event loop.

    Args:
        heartbeat: Seconds without a signal after which a watcher gets a heartbeat.
        clock: Measures the heartbeats.
    """

    def __init__(self, *, heartbeat: float, clock: Clock) -> None:
        self._pace = PollIntervals(recheck=heartbeat, heartbeat=heartbeat)
        self._clock = clock
        self._signals: dict[str, Signal] = {}
        self._notifier = Notifier[str]()

    @property
    def watchers(self) -> int:
        """The number of current watchers."""
        return self._notifier.waiting

    def update(self, signals: Iterable[Signal]) -> None:
        """Stores changed signals; one that is older than the stored one is ignored."""
        for signal in signals:
            known = self._signals.get(signal.allocation_id)
            if known is None or known.revision < signal.revision:
                self._put(signal)

    def replace(self, signals: Iterable[Signal]) -> None:
        """Stores the signals of all existing allocations, and removes the others.

        Anyone who watches a forgotten allocation continues to wait: it may come back.
        """
        known, self._signals = self._signals, {}
        for signal in signals:
            if known.get(signal.allocation_id) == signal:
                self._signals[signal.allocation_id] = signal
            else:
                self._put(signal)

    async def watch(self, subscriptions: Sequence[Subscription]) -> AsyncGenerator[SignalChange | None, None]:
        """Yields the signals of some allocations that the watcher does not know, then each change.

        Ends when the service stops. An allocation that is not known is waited for.

        Yields:
            The change; None at the start if there is none to send, and whenever nothing came for a while.
        """
        seen = {each.key: each.after_revision for each in subscriptions}

        def news(due: Iterable[Subscription]) -> Iterator[SignalChange]:
            for each in due:
                signal = self._signals.get(each.allocation_id)
                if signal is not None and signal.revision > seen[each.key]:
                    yield SignalChange(each.key, signal)

        async def look(turn: Turn[Subscription]) -> AsyncGenerator[SignalChange, None]:
            for change in news(turn.due):
                seen[change.key] = change.signal.revision
                yield change

        if not self._notifier.closed and not any(news(subscriptions)):
            yield None
        async with aclosing(
            follow(
                subscriptions,
                look,
                topics=lambda each: (each.allocation_id,),
                notifier=self._notifier,
                clock=self._clock,
                pace=self._pace,
                quiet=None,
            )
        ) as changes:
            async for change in changes:
                yield change

    def close(self) -> None:
        """Ends every watch."""
        self._notifier.close()

    def _put(self, signal: Signal) -> None:
        self._signals[signal.allocation_id] = signal
        self._notifier.notify(signal.allocation_id)
