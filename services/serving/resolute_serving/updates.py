"""Updates of stored objects: the fields that a request changes, and the check for concurrent changes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from functools import lru_cache

from google.protobuf.field_mask_pb2 import FieldMask

from resolute.errors import ConflictError
from resolute_serving.validation import invalid


def update_paths(mask: FieldMask, *, allowed: Collection[str]) -> frozenset[str]:
    """Reads the update mask of a request (AIP-134).

    Args:
        mask: The request's ``update_mask``.
        allowed: The paths that may be updated.

    Returns:
        The paths to update, at least one.

    Raises:
        InvalidArgumentError: The mask is empty, or has a path that is not allowed.
    """
    names = ", ".join(sorted(allowed))
    if not mask.paths:
        raise invalid("update_mask", f"update_mask is empty; name the fields to update: {names}")
    unknown = sorted(set(mask.paths) - set(allowed))
    if unknown:
        refused = ", ".join(repr(path[:80]) for path in unknown[:10])
        raise invalid("update_mask", f"update_mask has {refused}; the fields that can be updated are {names}")
    return frozenset(mask.paths)


@lru_cache(maxsize=4096)
def etag_of(revision: int) -> str:
    """The etag of an object, which is opaque to clients.

    Args:
        revision: The number in the object's row that grows with each update.
    """
    return hashlib.sha256(f"revision {revision}".encode()).hexdigest()[:16]


def check_etag(given: str, *, revision: int, resource: str) -> None:
    """Makes sure that the caller has seen the current state. Call it inside the updating transaction.

    Args:
        given: The etag in the request; empty for an unconditional update.
        revision: The revision of the row that is about to be updated.
        resource: Names the object in the error.

    Raises:
        ConflictError: The object was updated after the caller read it.
    """
    if given and given != etag_of(revision):
        raise ConflictError(
            f"{resource} was changed meanwhile; read it again and repeat the update", resource=resource
        )
