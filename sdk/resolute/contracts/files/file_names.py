"""Limits for the length and the depth of file names in archives and checkpoints."""

from __future__ import annotations

MAX_PATH_BYTES = 3072
"""Most bytes of a path in UTF-8; with the directory before it, it still fits what systems take."""
MAX_PART_BYTES = 255
"""Most bytes of one part of a path in UTF-8: what file systems take."""
MAX_DEPTH = 100
"""Most parts of a path; tools that descend a tree call themselves once for each."""


def length_problem(path: str) -> str:
    """Says what is too long in a relative path, as the end of a sentence; empty if nothing is.

    Args:
        path: Parts joined by slashes. Bytes that are no UTF-8 may be escaped as surrogates.
    """
    # Counted before the path is cut into parts: there may be megabytes of it.
    if len(path) > MAX_PATH_BYTES or len(_encoded(path)) > MAX_PATH_BYTES:
        return f"takes more than {MAX_PATH_BYTES} bytes; use shorter names"
    parts = path.strip("/").split("/")
    if len(parts) > MAX_DEPTH:
        return f"has more than {MAX_DEPTH} parts; use fewer directories within each other"
    if any(len(_encoded(part)) > MAX_PART_BYTES for part in parts):
        return f"has a part of more than {MAX_PART_BYTES} bytes; use shorter names"
    return ""


def shortened(path: str) -> str:
    """Writes a path for a message, quoted and cut to a readable length."""
    return repr(path) if len(path) <= 100 else f"{path[:100]!r}…"


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
