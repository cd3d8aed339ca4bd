"""Digests of files, written as ``algorithm:hex``."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from typing import Protocol

from resolute.errors import FailedPreconditionError

_BLAKE3 = "blake3"
PREFERRED = _BLAKE3 if importlib.util.find_spec(_BLAKE3) else "sha256"
"""Makes new digests: BLAKE3, which keeps up with disks, or SHA-256 where that is not installed."""


class Hash(Protocol):
    """A hash function that takes bytes in parts."""

    def update(self, data: bytes | bytearray | memoryview, /) -> object:
        """Takes more bytes."""

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""


def new_hash(algorithm: str = PREFERRED) -> Hash:
    """Returns what computes digests of one kind.

    Raises:
        FailedPreconditionError: The kind is not known here.
    """
    if algorithm == _BLAKE3:
        return _blake3()
    if algorithm not in hashlib.algorithms_available or algorithm.startswith("shake"):
        raise FailedPreconditionError(
            f"digests of the kind {algorithm!r} are unknown here; upgrade this client"
        )
    return hashlib.new(algorithm, usedforsecurity=False)


def hasher_for(digest: str) -> Hash | None:
    """Returns what computes digests of the kind of ``digest``; None when that is empty.

    Raises:
        FailedPreconditionError: The kind is not known here.
    """
    algorithm = digest.partition(":")[0]
    return new_hash(algorithm) if algorithm else None


def format_digest(hasher: Hash, algorithm: str = PREFERRED) -> str:
    """Writes what a hash has hashed as ``algorithm:hex``."""
    return f"{algorithm}:{hasher.hexdigest()}"


def _blake3() -> Hash:
    try:
        import blake3
    except ImportError as failure:
        raise FailedPreconditionError(
            "these files have BLAKE3 digests, and the package blake3 is not installed; pip install blake3"
        ) from failure
    make: Callable[[], Hash] = blake3.blake3
    return make()
