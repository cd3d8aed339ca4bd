"""Builds URLs of databases."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL


def sqlite_url(path: Path) -> str:
    """The URL of an SQLite file, wherever it is: its path may have letters that mean something in URLs."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)
