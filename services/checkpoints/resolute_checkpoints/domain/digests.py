"""Digests of files, written as ``algorithm:hex``."""

from __future__ import annotations

import re

from resolute_serving.validation import invalid

_FORM = re.compile(r"(?P<algorithm>[a-z0-9_-]{1,20}):(?P<hex>(?:[0-9a-f]{2}){4,64})")
_SIZES = {"md5": 16, "sha256": 32, "blake2b": 64, "blake3": 32}


def check_digest(digest: str, *, field: str) -> str:
    """Checks and returns a digest. Algorithms that are unknown here are accepted.

    Raises:
        InvalidArgumentError: It is not written as ``algorithm:hex``, or has the wrong length.
    """
    match = _FORM.fullmatch(digest)
    if match is None:
        message = f"{field} is {digest[:100]!r}; write 'algorithm:hex' in lower case, such as 'sha256:…'"
        raise invalid(field, message)
    want = _SIZES.get(match["algorithm"])
    if want is not None and len(match["hex"]) != 2 * want:
        message = f"{field} has {len(match['hex'])} hex digits; a {match['algorithm']} digest has {2 * want}"
        raise invalid(field, message)
    return digest
