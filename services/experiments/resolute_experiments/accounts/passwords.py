"""Passwords: kept as salted scrypt hashes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import dataclass

from resolute.errors import InvalidArgumentError, Violation

SHORTEST = 8
"""Characters that a password has at least."""
_LONGEST = 1024


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


def _scrypt(password: str, salt: bytes, cost: _Cost) -> bytes:
    memory = 256 * cost.n * cost.r
    return hashlib.scrypt(password.encode(), salt=salt, n=cost.n, r=cost.r, p=cost.p, maxmem=memory, dklen=32)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
