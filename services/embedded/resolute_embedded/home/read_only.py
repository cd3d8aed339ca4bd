"""Opens databases of a home for reading."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def open_read_only(path: Path) -> sqlite3.Connection:
    """Opens a database, wherever it is: its path may have letters that mean something in URLs."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
