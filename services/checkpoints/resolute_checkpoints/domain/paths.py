"""Names of files within a checkpoint. They are kept exactly, in any script, and never lead out of it."""

from __future__ import annotations

from resolute.contracts.files.file_names import length_problem, shortened
from resolute_serving.validation import invalid


def check_path(path: str, *, field: str) -> str:
    """Checks and returns a path.

    Args:
        path: Relative, parts joined by slashes; a directory's ends in one.
        field: Name of the field, for the message.

    Raises:
        InvalidArgumentError: It is empty, absolute, climbs out, is not in its simplest form, or is too long.
    """
    problem = _problem(path)
    if problem:
        message = f"{field} {shortened(path)} {problem}"
        raise invalid(field, message)
    return path


def _problem(path: str) -> str:
    if not path or path == "/":
        return "is empty; name a file"
    if path.startswith("/"):
        return "is absolute; name files relative to the checkpoint"
    if "\0" in path:
        return "holds a NUL character; rename the file"
    too_long = length_problem(path)
    if too_long:
        return too_long
    parts = path.removesuffix("/").split("/")
    if ".." in parts:
        return "climbs out with '..'; name files relative to the checkpoint"
    if "" in parts or "." in parts:
        return "has an empty part or '.'; write it in its simplest form"
    return ""
