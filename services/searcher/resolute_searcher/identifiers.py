"""Identifiers of trials, within their search and outside."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID, uuid5

from resolute.errors import InvalidArgumentError, Violation


@lru_cache(maxsize=65_536)
def trial_id(search_id: str, trial_key: str) -> str:
    """Returns the UUID of a trial outside of its search."""
    return str(uuid5(UUID(search_id), trial_key))


def canonical_uuid(text: str, *, field: str) -> str:
    """Returns a UUID in its usual spelling.

    Args:
        text: The UUID as sent.
        field: The request's field, for the error.

    Raises:
        InvalidArgumentError: It is none.
    """
    try:
        return str(UUID(text))
    except ValueError:
        problem = f"must be a UUID, not {text!r}"
        raise InvalidArgumentError(
            f"{field} {problem}", violations=[Violation(field=field, description=problem)]
        ) from None


def invalid_field(field: str, problem: str) -> InvalidArgumentError:
    """Makes the error for an invalid field of a request."""
    violation = Violation(field=field, description=problem)
    return InvalidArgumentError(str(violation), violations=[violation])
