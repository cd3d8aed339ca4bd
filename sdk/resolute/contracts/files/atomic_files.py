"""Small files that are replaced atomically, so that a reader never sees a partial one."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.errors import DataLossError


class MalformedFileError(DataLossError, ValueError):
    """The content of a file is malformed."""


def write_atomically(path: Path, content: str | bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Replaces a file so that readers see the old content or the new, never a part.

    Args:
        path: The file.
        content: Its whole new content; text is written as UTF-8.
        mode: Permissions of the file, set before anything is in it.
        sync: Whether the content and its name are on disk before this returns.
    """
    data = content.encode() if isinstance(content, str) else content
    # Threads that write the same file at once do not meet in one.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        _sync_directory(path.parent)


def write_json(path: Path, content: Mapping[str, Any], *, mode: int = 0o600, sync: bool = False) -> None:
    """Replaces a JSON file like ``write_atomically``."""
    write_atomically(path, json.dumps(content, indent=2) + "\n", mode=mode, sync=sync)


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the content of a JSON file, or None if the file is not there.

    Raises:
        MalformedFileError: The file holds something else than a JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as failure:  # the latter for thousands of nested brackets
        raise MalformedFileError(f"{path} holds no JSON: {failure}") from failure
    if not isinstance(content, dict):
        raise MalformedFileError(f"{path} holds a JSON {type(content).__name__}, an object was expected")
    return content


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
