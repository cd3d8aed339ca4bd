"""Rotates the key that signs tokens, for clusters of one process and of separate services."""

from __future__ import annotations

import time
from pathlib import Path

from resolute_serving.auth import signing_keys


def rotate_or_drop(path: Path, *, drop: bool, at_once: bool) -> str:
    """Makes a new key, or drops the old ones; says what that means.

    Args:
        path: File of the keys.
        drop: Whether the old ones are dropped.
        at_once: Whether also those that running trials may need.

    Raises:
        FailedPreconditionError: There is no key, or an old one may still be needed.
    """
    if not drop:
        signing_keys.rotate(path)
        return (
            "a new key signs from now on; tokens of the old one stay valid until `--drop-old` ends them, "
            "in two hours at the earliest"
        )
    dropped = signing_keys.drop_old(path, now=None if at_once else time.time())
    if not dropped:
        return "there is no old key"
    return (
        f"{dropped} old {'key was' if dropped == 1 else 'keys were'} dropped; who has a token of then signs "
        "in again, and the next start of the cluster renews the operator's token"
    )
