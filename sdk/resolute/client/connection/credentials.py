"""Tokens that logins got, kept for later commands: one file for each cluster, readable by its owner alone."""

from __future__ import annotations

from pathlib import Path

from resolute.contracts.atomic_files import write_atomically


def save(path: Path, token: str) -> None:
    """Writes a token, in place of an earlier one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, token)


def delete(path: Path) -> bool:
    """Removes a token; tells whether there was one."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
