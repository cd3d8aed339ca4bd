"""Stored tokens of logins: one file for each cluster, readable only by its owner."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from resolute.contracts.files.atomic_files import write_atomically


def device_file(credential: Path, user: str) -> Path:
    """Where the proof is kept that a user has signed in from here before; logging out leaves it.

    Args:
        credential: Where the token of the login is kept.
        user: Name of the user.
    """
    return credential.with_name(f"{credential.name}~{quote(user, safe='')}")


def read(path: Path) -> str:
    """Reads what was kept; empty if there is nothing."""
    try:
        return path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return ""


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


def delete_all(directory: Path) -> int:
    """Removes the tokens of logins at all clusters; tells how many there were."""
    files = list(directory.glob("*")) if directory.is_dir() else []
    # What lets a device sign in again stays, as after a single logout.
    return sum(delete(path) for path in files if path.is_file() and "~" not in path.name)
