"""Checks identifiers from callers. A checkpoint's UUID names a directory, so only one spelling is valid."""

from __future__ import annotations

import uuid

from resolute_serving.validation import invalid


def parse_uuid(text: str, *, field: str) -> str:
    """Returns a UUID as it was sent.

    Args:
        text: What was sent.
        field: Name of the field, for the message.

    Raises:
        InvalidArgumentError: It is no UUID in lower case with hyphens.
    """
    try:
        canonical = str(uuid.UUID(text))
    except ValueError:
        canonical = ""
    if canonical != text or not text:
        message = f"{field} is {text[:80]!r}; it must be a UUID in lower case with hyphens"
        raise invalid(field, message)
    return text


def parse_optional_uuid(text: str, *, field: str) -> str:
    """Returns a UUID as it was sent, or an empty text.

    Raises:
        InvalidArgumentError: It is neither.
    """
    return parse_uuid(text, field=field) if text else ""
