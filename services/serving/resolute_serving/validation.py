"""Checks of request fields that every service makes."""

from __future__ import annotations

import uuid

from resolute.errors import InvalidArgumentError, Violation


def invalid(field: str, message: str) -> InvalidArgumentError:
    """Builds the error for one wrong field."""
    return InvalidArgumentError(message, violations=[Violation(field, message)])


def parse_uuid(text: str, *, field: str) -> str:
    """Reads a UUID and returns it in its usual spelling.

    Raises:
        InvalidArgumentError: The text is not a UUID.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise invalid(field, f"{field} is {text[:80]!r}; it must be a UUID") from error
