"""Names of files within a checkpoint: kept exactly, of any script, and never leading out of it."""

from __future__ import annotations

from resolute.errors import InvalidArgumentError, Violation

MAX_PATH_BYTES = 3072
"""Most bytes of a path in UTF-8; with the directory before it, it still fits what systems take."""
MAX_PART_BYTES = 255
"""Most bytes of one part of a path in UTF-8: what file systems take."""


def check_path(path: str, *, field: str) -> str:
    """Returns a path as it was sent.

    Args:
        path: Relative, parts joined by slashes; a directory's ends in one.
        field: Name of the field, for the message.

    Raises:
        InvalidArgumentError: It is empty, absolute, climbs out, is not in its simplest form, or is too long.
    """
    problem = _problem(path)
    if problem:
        message = f"{field} {_shortened(path)} {problem}"
        raise InvalidArgumentError(message, violations=[Violation(field, message)])
    return path


def _problem(path: str) -> str:
    if not path or path == "/":
        return "is empty; name a file"
    if path.startswith("/"):
        return "is absolute; name files relative to the checkpoint"
    if "\0" in path:
        return "holds a NUL character; rename the file"
    parts = path.removesuffix("/").split("/")
    if ".." in parts:
        return "climbs out with '..'; name files relative to the checkpoint"
    if "" in parts or "." in parts:
        return "has an empty part or '.'; write it in its simplest form"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"takes more than {MAX_PATH_BYTES} bytes; use shorter names"
    if any(len(part.encode()) > MAX_PART_BYTES for part in parts):
        return f"has a part of more than {MAX_PART_BYTES} bytes; use shorter names"
    return ""


def _shortened(path: str) -> str:
    return repr(path) if len(path) <= 100 else f"{path[:100]!r}…"
