"""Removes the secrets of a run from its log, such as those in a printed environment."""

from __future__ import annotations

import base64
import json
from collections import deque
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

MASK = b"***"
"""Stands for a secret."""
_SHORTEST_FORM = 8
_RENEWALS = 16
"""Renewed tokens that are remembered, of two kinds: one that is minutes old is not printed."""


class Secrets:
    """The secrets that a run's log must not show. Secrets may be added while another thread masks text.

    Args:
        lasting: The initial secrets.
    """

    def __init__(self, *lasting: str) -> None:
        self._lasting: tuple[bytes, ...] = ()
        self._renewed: deque[bytes] = deque(maxlen=_RENEWALS)
        self._all: tuple[bytes, ...] = ()
        for secret in lasting:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Adds a secret for good. An empty text is ignored."""
        encoded = secret.encode()
        if encoded and encoded not in self._lasting:
            self._lasting = (*self._lasting, encoded)
            self._all = self._longest_first()

    def add_printed(self, value: str) -> None:
        """Adds a secret in every form in which programs print one, see ``printed_forms``."""
        for form in printed_forms(value):
            self.add(form)

    def renew(self, token: str) -> None:
        """Adds a renewed token. Only the latest ones are kept: a long run has many."""
        encoded = token.encode()
        if encoded and encoded not in self._all:
            self._renewed.append(encoded)
            self._all = self._longest_first()

    def _longest_first(self) -> tuple[bytes, ...]:
        """All secrets, longest first: if one is part of another, the whole of the longer one is masked."""
        return tuple(sorted((*self._lasting, *self._renewed), key=len, reverse=True))

    def mask(self, text: bytes) -> bytes:
        """Returns a text with every secret in it replaced."""
        for secret in self._all:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def partial_secret_length(self, text: bytes) -> int:
        """Returns how many bytes at the end of a text may begin a secret."""
        return max((_overlap(text, secret) for secret in self._all), default=0)


def printed_forms(value: str) -> Iterator[str]:
    """Yields a value and the texts in which programs show it or send it.

    These are its single lines, its escapes in JSON and in URLs, and its base64 by itself and within a longer
    text, as in a header ``Basic``. A part that is shorter than 8 characters is left out.
    """
    yield value
    forms = {*(line.strip() for line in value.splitlines()), value.strip()}
    forms |= {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    forms |= {quote(value, safe=""), quote(value), quote_plus(value)}
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        forms.add(encode(value.encode()).decode())
        # Three bytes are four characters: what stands before the value decides how it is cut.
        forms |= {_within(encode, value.encode(), before=before) for before in range(3)}
    yield from sorted(form for form in forms if len(form) >= _SHORTEST_FORM)


def _within(encode: Callable[[bytes], bytes], value: bytes, *, before: int) -> str:
    """Returns the characters in the base64 of a text that depend only on a value after ``before`` bytes."""
    whole = encode(bytes(before) + value).decode()
    # Of a character that begins or ends within the value, its neighbours decide some bits.
    return whole[-(-8 * before // 6) : 8 * (before + len(value)) // 6]


class StreamRedactor:
    """Masks secrets in one stream of output, which may arrive in parts and in lines of any length.

    Lines are cut only after masking: half of a secret is secret too, but can no longer be recognised.

    Args:
        secrets: The secrets to mask.
    """

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Adds bytes and returns those that can be shown. Bytes that may begin a secret are held back."""
        text = self._secrets.mask(self._held + data)
        shown = len(text) - self._secrets.partial_secret_length(text)
        self._held = text[shown:]
        return text[:shown]

    def finish(self) -> bytes:
        """Returns the bytes that were held back, at the end of the stream."""
        rest, self._held = self._held, b""
        return rest


def _overlap(text: bytes, secret: bytes) -> int:
    """Returns the length of the longest suffix of a text that is a prefix of the secret."""
    at = text.find(secret[:1], max(len(text) - len(secret) + 1, 0))
    while at >= 0:
        if secret.startswith(text[at:]):
            return len(text) - at
        at = text.find(secret[:1], at + 1)
    return 0
