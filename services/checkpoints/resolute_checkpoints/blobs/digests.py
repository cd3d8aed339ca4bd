"""Digests of files as ``algorithm:hex``, and the check of bytes against one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import BinaryIO, Protocol

from resolute.errors import DataLossError, InvalidArgumentError, UnimplementedError, Violation

CHUNK = 1024 * 1024
_FORM = re.compile(r"(?P<algorithm>[a-z0-9_-]{1,20}):(?P<hex>(?:[0-9a-f]{2}){4,64})")
_SIZES = {"md5": 16, "sha256": 32, "blake2b": 64, "blake3": 32}


class Hash(Protocol):
    """Takes bytes and sums them up."""

    def update(self, data: bytes, /) -> object:
        """Takes more bytes."""

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""


_HASHES: Mapping[str, Callable[[], Hash]] = {
    "md5": hashlib.md5,
    "sha256": hashlib.sha256,
    "blake2b": hashlib.blake2b,
}


def check_digest(digest: str, *, field: str) -> str:
    """Returns a digest as it was sent. Algorithms that are unknown here are kept as well.

    Raises:
        InvalidArgumentError: It is not written as ``algorithm:hex``, or has the wrong length.
    """
    match = _FORM.fullmatch(digest)
    if match is None:
        message = f"{field} is {digest[:100]!r}; write 'algorithm:hex' in lower case, such as 'sha256:…'"
        raise InvalidArgumentError(message, violations=[Violation(field, message)])
    want = _SIZES.get(match["algorithm"])
    if want is not None and len(match["hex"]) != 2 * want:
        message = f"{field} has {len(match['hex'])} hex digits; a {match['algorithm']} digest has {2 * want}"
        raise InvalidArgumentError(message, violations=[Violation(field, message)])
    return digest


def verify(stream: BinaryIO, digest: str, *, name: str) -> None:
    """Reads a stream to its end and compares what it holds with a digest.

    Args:
        stream: The bytes.
        digest: ``algorithm:hex``.
        name: The file, for the message.

    Raises:
        DataLossError: The bytes are others than those that were committed.
        UnimplementedError: The algorithm is not known here.
    """
    algorithm, _, want = digest.partition(":")
    make = _HASHES.get(algorithm)
    if make is None:
        known = ", ".join(sorted(_HASHES))
        raise UnimplementedError(f"{name} has a digest by {algorithm!r}; this version verifies {known}")
    hasher = make()
    while chunk := stream.read(CHUNK):
        hasher.update(chunk)
    have = hasher.hexdigest()
    if have != want:
        raise DataLossError(
            f"{name} is damaged: its {algorithm} is {have} and {want} was committed; "
            "restore it from a copy or use another checkpoint",
            resource=name,
        )
