"""Text that every encoding, message and database accepts."""

from __future__ import annotations


def valid_unicode(text: str) -> str:
    """Puts a question mark in the place of what no UTF-8 can hold: halves of surrogate pairs."""
    return text if text.isascii() else text.encode(errors="replace").decode()
