"""Leases of running allocations, in memory only. A lease counts only the time during which this service runs.

A service that is suspended with its machine, paused or starved receives no renewals. The monotonic clock does
not show all of that, so only the time between consecutive checks counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from resolute.contracts.clock import Clock

_LONGEST_LOOK_SECONDS = 15.0
"""Most seconds between two looks that count. The service looks every five seconds while it runs."""


class Leases:
    """The deadlines of running allocations, in seconds of uptime.

    Args:
        clock: Measures the uptime.
        ttl: Seconds for which a lease is valid without renewal.
    """

    def __init__(self, clock: Clock, *, ttl: float) -> None:
        self._clock = clock
        self._deadlines: dict[str, float] = {}
        self._last_seen: dict[str, dict[int, float]] = {}
        """When each container renewed last. It outlives the lease, until the run is settled."""
        self._uptime = 0.0
        self._looked_at = clock.monotonic()
        self.ttl = ttl
        """Seconds that a lease lasts without renewal."""

    def renew(self, allocation_id: str, *, rank: int | None = None) -> None:
        """Begins or prolongs a lease from now on.

        Args:
            allocation_id: The allocation.
            rank: The container that renews; None for what has no containers.
        """
        now = self._look()
        self._deadlines[allocation_id] = now + self.ttl
        if rank is not None:
            self._last_seen.setdefault(allocation_id, {})[rank] = now

    def silence(self, allocation_id: str, rank: int) -> float:
        """Seconds since a container renewed; one that never did is silent from now on."""
        now = self._look()
        return now - self._last_seen.setdefault(allocation_id, {}).setdefault(rank, now)

    def forget(self, allocation_id: str) -> None:
        """Ends a lease that is no longer needed."""
        self._deadlines.pop(allocation_id, None)

    def settled(self, allocation_id: str) -> None:
        """Forgets a run that was settled."""
        self._deadlines.pop(allocation_id, None)
        self._last_seen.pop(allocation_id, None)

    def expired(self, live: Iterable[str]) -> list[str]:
        """Returns which of the live allocations did not renew for too long; one seen first begins now."""
        now = self._look()
        late = []
        for allocation_id in live:
            deadline = self._deadlines.setdefault(allocation_id, now + self.ttl)
            if deadline <= now:
                late.append(allocation_id)
        return late

    def seconds_until_next(self) -> float:
        """Seconds until the first lease runs out that has not; infinite when there is none."""
        now = self._look()
        return min((deadline - now for deadline in self._deadlines.values() if deadline > now), default=inf)

    def _look(self) -> float:
        """Returns the uptime."""
        now = self._clock.monotonic()
        self._uptime += min(now - self._looked_at, _LONGEST_LOOK_SECONDS)
        self._looked_at = now
        return self._uptime
