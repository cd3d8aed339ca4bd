"""Pages of lists (AIP-158): bounded sizes and opaque tokens that only fit the request they came from."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Any

from google.protobuf.message import Message

from resolute.errors import InvalidArgumentError, Violation


def page_size(requested: int, *, default: int = 100, most: int = 1000) -> int:
    """Returns how many items a page holds: ``default`` for zero, never above ``most``.

    Raises:
        InvalidArgumentError: The size is negative.
    """
    if requested < 0:
        message = f"page_size is {requested}; it must be zero or above"
        raise InvalidArgumentError(message, violations=[Violation("page_size", message)])
    return min(requested or default, most)


def encode_token(request: Message, position: Any) -> str:
    """Makes the token of the next page.

    Args:
        request: The request whose filters the token belongs to; it must have a ``page_token`` field.
        position: JSON-able key of the last item on this page.
    """
    text = json.dumps([_fingerprint(request), position], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def decode_token(request: Message) -> Any:
    """Returns the position in the request's token; None for the first page.

    Raises:
        InvalidArgumentError: The token is not one of ours, or it came from a request with other filters.
    """
    token: str = request.page_token  # type: ignore[attr-defined]
    if not token:
        return None
    try:
        fingerprint, position = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, binascii.Error) as error:
        message = "page_token is not one that this service gave; begin with the first page"
        raise InvalidArgumentError(message, violations=[Violation("page_token", message)]) from error
    if fingerprint != _fingerprint(request):
        message = "page_token belongs to a request with other filters; begin with the first page"
        raise InvalidArgumentError(message, violations=[Violation("page_token", message)])
    return position


def _fingerprint(request: Message) -> str:
    bare = type(request)()
    bare.CopyFrom(request)
    bare.ClearField("page_token")
    if "page_size" in bare.DESCRIPTOR.fields_by_name:
        bare.ClearField("page_size")
    return hashlib.sha256(bare.SerializeToString(deterministic=True)).hexdigest()[:12]
