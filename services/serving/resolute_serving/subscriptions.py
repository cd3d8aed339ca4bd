"""The keys by which a client distinguishes the objects of one batched watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from resolute_serving.validation import invalid

MAX_SUBSCRIPTIONS = 500
MAX_KEY_LENGTH = 200


class Subscribed(Protocol):
    """One object of a batched watch."""

    key: str
    """Chosen by the client."""


def check_keys(subscriptions: Sequence[Subscribed]) -> None:
    """Checks the number of subscriptions, and that each has a key of its own.

    Raises:
        InvalidArgumentError: There are none or too many, or a key is wrong.
    """
    count = len(subscriptions)
    if not 1 <= count <= MAX_SUBSCRIPTIONS:
        raise invalid("subscriptions", f"there are {count} subscriptions; send 1 to {MAX_SUBSCRIPTIONS}")
    seen: set[str] = set()
    for index, subscription in enumerate(subscriptions):
        field, key = f"subscriptions[{index}].key", subscription.key
        if not 1 <= len(key) <= MAX_KEY_LENGTH:
            raise invalid(field, f"the key must have 1 to {MAX_KEY_LENGTH} characters and has {len(key)}")
        if key in seen:
            raise invalid(field, f"the key {key!r} comes twice; give each subscription its own")
        seen.add(key)
