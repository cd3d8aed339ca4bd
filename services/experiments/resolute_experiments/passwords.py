"""Passwords: kept as salted scrypt hashes, and tried only so often."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections import OrderedDict
from dataclasses import dataclass

from resolute.contracts.clock import Clock
from resolute.errors import InvalidArgumentError, QuotaError, Violation

SHORTEST = 8
"""Characters that a password has at least."""
_LONGEST = 1024
_FAILURES = 5
_PAUSE_SECONDS = 60.0
_REMEMBERED_NAMES = 10_000


@dataclass(frozen=True)
class _Cost:
    """Parameters of scrypt (RFC 7914): memory is 128 * n * r bytes, 16 MiB here."""

    n: int = 2**14
    r: int = 8
    p: int = 1


_COST = _Cost()


def hash_password(password: str) -> str:
    """Makes what is stored of a password; takes some 50 ms of a core on purpose.

    Raises:
        InvalidArgumentError: It is too short or too long.
    """
    if not SHORTEST <= len(password) <= _LONGEST:
        message = f"a password has {SHORTEST} to {_LONGEST} characters; this one has {len(password)}"
        raise InvalidArgumentError(message, violations=[Violation("password", message)])
    salt = os.urandom(16)
    digest = _scrypt(password, salt, _COST)
    return "$".join(["scrypt", str(_COST.n), str(_COST.r), str(_COST.p), _encoded(salt), _encoded(digest)])


def matches(password: str, stored: str) -> bool:
    """Whether a password is the one that was stored.

    It takes the same time whether or not there is a stored one, so that it does not tell which names exist.

    Args:
        password: What was typed.
        stored: What ``hash_password`` made; empty when there is none.
    """
    if not stored:
        _scrypt(password[:_LONGEST], b"0" * 16, _COST)
        return False
    _, n, r, p, salt, digest = stored.split("$")
    found = _scrypt(password[:_LONGEST], base64.b64decode(salt), _Cost(int(n), int(r), int(p)))
    return hmac.compare_digest(found, base64.b64decode(digest))


class LoginThrottle:
    """Makes a name wait after five wrong passwords within a minute.

    Args:
        clock: Tells the time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, name: str) -> None:
        """Lets an attempt pass.

        Raises:
            QuotaError: The name has to wait.
        """
        if len(self._recent(name)) >= _FAILURES:
            raise QuotaError(
                f"{_FAILURES} wrong passwords for user {name!r} within a minute; try again in a minute"
            )

    def failed(self, name: str) -> None:
        """Notes a wrong password."""
        self._failures[name] = [*self._recent(name), self._clock.monotonic()]
        self._failures.move_to_end(name)
        while len(self._failures) > _REMEMBERED_NAMES:
            self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forgets the failures of a name."""
        self._failures.pop(name, None)

    def _recent(self, name: str) -> list[float]:
        since = self._clock.monotonic() - _PAUSE_SECONDS
        return [moment for moment in self._failures.get(name, []) if moment > since]


def _scrypt(password: str, salt: bytes, cost: _Cost) -> bytes:
    memory = 256 * cost.n * cost.r
    return hashlib.scrypt(password.encode(), salt=salt, n=cost.n, r=cost.r, p=cost.p, maxmem=memory, dklen=32)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
