"""Limits of password attempts: for each name, for each client address, and in parallel.

An attempt is counted before its password is hashed, so that parallel attempts count too. A successful attempt
is not counted. Clients that have signed in before send a device token (a "device cookie" in OWASP's terms).
Their attempts are counted separately, so that others cannot lock a user out by trying passwords.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from resolute.contracts.clock import Clock
from resolute.errors import QuotaError
from resolute_experiments.window import Window

MOST_FOR_A_NAME = 5
"""Attempts for one name, or from one known device, within a minute."""
MOST_FOR_A_PEER = 30
"""Attempts from one address within a minute, whatever the names."""
_AT_ONCE = 2
"""Hashes that are computed at the same time; each takes a core."""
_MOST_WAITING = 50


class SignInAttempts:
    """Counts attempts to sign in.

    Args:
        clock: Tells the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._by_name = Window(clock, most=MOST_FOR_A_NAME)
        self._by_peer = Window(clock, most=MOST_FOR_A_PEER)
        self._hashing = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    @asynccontextmanager
    async def attempt(self, name: str, *, peer: str, device: str = "") -> AsyncIterator[Callable[[], None]]:
        """Counts an attempt, waits until it may be made, and gives what is called if it succeeds.

        Args:
            name: Name of the user.
            peer: Address of the client, without its port.
            device: Id of the device token of this user that came with the attempt; empty for none.

        Raises:
            QuotaError: There were too many attempts.
        """
        counted = [(self._by_name, f"device {device}")] if device else [(self._by_name, f"name {name}")]
        if not device:
            counted.append((self._by_peer, peer))
        if any(window.full(key) for window, key in counted):
            raise QuotaError(
                f"too many attempts to sign in as {name!r} or from {peer}; try again in a minute. "
                "Clients that have signed in as this user before are not affected, nor are tokens"
            )
        if self._waiting >= _MOST_WAITING:
            raise QuotaError("too many attempts to sign in at the same time; try again in some seconds")
        moments = [(window, key, window.add(key)) for window, key in counted]
        self._waiting += 1
        try:
            await self._hashing.acquire()
        finally:
            self._waiting -= 1

        def succeeded() -> None:
            for window, key, moment in moments:
                window.remove(key, moment)

        try:
            yield succeeded
        finally:
            self._hashing.release()
