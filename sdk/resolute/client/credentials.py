"""Tokens that logins got, kept for later commands: one file for each cluster, readable by its owner alone."""

from __future__ import annotations

import os
from pathlib import Path


def keep(path: Path, token: str) -> None:
    """Writes a token, in place of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(token)
    temporary.replace(path)


def forget(path: Path) -> bool:
    """Removes a token; tells whether there was one."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
