"""ID tokens that were used to sign in. Each is valid for one session.

They are only in memory: after a start, no token from before it is accepted.
"""

from __future__ import annotations

import hashlib

from resolute.contracts.clock import Clock
from resolute.errors import UnauthenticatedError


class UsedTokens:
    """Stores the tokens of the last minutes. Older tokens are refused for their age.

    Args:
        clock: Tells the time.
        seconds: Seconds for which a token is stored.
    """

    def __init__(self, clock: Clock, *, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._forgotten_at: dict[bytes, float] = {}

    def use(self, token: str) -> None:
        """Notes a verified token.

        Raises:
            UnauthenticatedError: Somebody has signed in with it before.
        """
        now = self._clock.monotonic()
        # In the order of their use, so the oldest come first.
        while self._forgotten_at and next(iter(self._forgotten_at.values())) <= now:
            del self._forgotten_at[next(iter(self._forgotten_at))]
        # The signed part alone: a token with another spelling of the signature is the same token.
        digest = hashlib.sha256(token.rpartition(".")[0].encode()).digest()
        if digest in self._forgotten_at:
            raise UnauthenticatedError("this ID token was used before; sign in again")
        self._forgotten_at[digest] = now + self._seconds
