"""Passwords, stored as salted scrypt hashes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from dataclasses import dataclass

from resolute.errors import InvalidArgumentError, Violation
from resolute_experiments.accounts.common_passwords import is_common

SHORTEST = 8
"""Characters that a password has at least."""
_LONGEST = 1024


@dataclass(frozen=True)
class _Cost:
    """Parameters of scrypt (RFC 7914), as OWASP recommends: memory is 128 * n * r bytes, 128 MiB here."""

    n: int = 2**17
    r: int = 8
    p: int = 1


_COST = _Cost()


def require_good(password: str, *, user_name: str) -> None:
    """Makes sure that a password may be set.

    Raises:
        InvalidArgumentError: It is too short or too long, or one that is guessed first.
    """
    message = ""
    if not SHORTEST <= len(password) <= _LONGEST:
        message = f"a password has {SHORTEST} to {_LONGEST} characters; this one has {len(password)}"
    elif is_common(password, user_name=user_name):
        message = (
            "this password is one of those that are guessed first: a common word, keys beside each other, "
            "digits or the user's name; take several words that do not belong together"
        )
    if message:
        raise InvalidArgumentError(message, violations=[Violation("password", message)])


def hash_password(password: str) -> str:
    """Makes what is stored of a password; takes half a second of a core and 128 MiB on purpose."""
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
    computed = _scrypt(password[:_LONGEST], base64.b64decode(salt), _Cost(int(n), int(r), int(p)))
    return hmac.compare_digest(computed, base64.b64decode(digest))


def is_outdated(stored: str) -> bool:
    """Whether what is stored of a password was made at less cost than is usual now."""
    return stored.split("$")[1:4] != [str(_COST.n), str(_COST.r), str(_COST.p)]


def _scrypt(password: str, salt: bytes, cost: _Cost) -> bytes:
    memory = 256 * cost.n * cost.r
    return hashlib.scrypt(password.encode(), salt=salt, n=cost.n, r=cost.r, p=cost.p, maxmem=memory, dklen=32)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
