"""Checks of request fields that all services share."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from resolute.errors import InvalidArgumentError, Violation


def invalid(field: str, message: str) -> InvalidArgumentError:
    """Builds the error for one wrong field."""
    return InvalidArgumentError(message, violations=[Violation(field, message)])


def invalid_field(field: str, problem: str) -> InvalidArgumentError:
    """Builds the error for one wrong field from what follows its name in the message."""
    return invalid(field, f"{field} {problem}")


def parse_uuid(text: str, *, field: str) -> str:
    """Reads a UUID and returns it in its usual spelling.

    Raises:
        InvalidArgumentError: The text is not a UUID.
    """
    try:
        return str(uuid.UUID(text))
    except ValueError as error:
        raise invalid(field, f"{field} is {text[:80]!r}; it must be a UUID") from error


def required_id(number: int, *, field: str) -> int:
    """Reads the number by which a request names an object.

    Raises:
        InvalidArgumentError: It is missing.
    """
    if number <= 0:
        raise invalid(field, f"{field} is {number}; it must be above 0")
    return number


def check_length(text: str, *, field: str, most: int) -> None:
    """Checks that a text is not too long.

    Raises:
        InvalidArgumentError: It is.
    """
    if len(text) > most:
        raise invalid(field, f"{field} has {len(text)} characters; {most} are allowed")


def check_unique(values: Iterable[str | int], *, field: str) -> None:
    """Checks that no value comes twice.

    Raises:
        InvalidArgumentError: One does.
    """
    seen: set[str | int] = set()
    for value in values:
        if value in seen:
            raise invalid_field(field, f"has {value!r} twice; name each once")
        seen.add(value)
