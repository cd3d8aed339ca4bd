"""Keeps the secrets of a run out of its log: whoever prints the environment prints them too."""

from __future__ import annotations

MASK = b"***"
"""Stands for a secret."""


class Secrets:
    """What a run knows and nobody may read in its log. It may grow while lines are masked in another thread.

    A secret is found where it stands in one line; one that a line of more than 8 KiB was cut in is not.

    Args:
        first: The first secrets.
    """

    def __init__(self, *first: str) -> None:
        self._secrets: tuple[bytes, ...] = ()
        for secret in first:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Adds a secret, such as a renewed token; an empty one is none."""
        encoded = secret.encode()
        if encoded and encoded not in self._secrets:
            self._secrets = (*self._secrets, encoded)

    def mask(self, text: bytes) -> bytes:
        """Returns a text with every secret in it replaced."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text
