"""Who was heard of lately. In memory only: a lease's time runs only while this service is up."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from resolute.contracts.clock import Clock


class Leases:
    """The deadlines of running allocations.

    Args:
        clock: Tells the time.
        ttl: Seconds that a lease lasts without renewal.
    """

    def __init__(self, clock: Clock, *, ttl: float) -> None:
        self._clock = clock
        self._deadlines: dict[str, float] = {}
        self.ttl = ttl
        """Seconds that a lease lasts without renewal."""

    def renew(self, allocation_id: str) -> None:
        """Begins or prolongs a lease from now on."""
        self._deadlines[allocation_id] = self._clock.monotonic() + self.ttl

    def forget(self, allocation_id: str) -> None:
        """Ends a lease that nobody needs any more."""
        self._deadlines.pop(allocation_id, None)

    def expired(self, live: Iterable[str]) -> list[str]:
        """Returns which of the live allocations were not heard of for too long; one seen first begins now."""
        now = self._clock.monotonic()
        late = []
        for allocation_id in live:
            deadline = self._deadlines.setdefault(allocation_id, now + self.ttl)
            if deadline <= now:
                late.append(allocation_id)
        return late

    def seconds_until_next(self) -> float:
        """Seconds until the first lease runs out that has not; infinite when there is none."""
        now = self._clock.monotonic()
        return min((deadline - now for deadline in self._deadlines.values() if deadline > now), default=inf)
