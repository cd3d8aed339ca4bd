"""The home of before 0.1.0 that is kept with the tests."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures" / "home_before_0_1_0"
_HOME = "/srv/resolute-home"
"""Where the home lay when its databases were written."""


def restore_database(name: str, path: Path, *, home: Path | None = None) -> None:
    """Writes the database of a service as an SQLite file.

    Args:
        name: The service.
        path: The file.
        home: The home that its paths are to name.
    """
    text = gzip.decompress((FOLDER / f"{name}.sql.gz").read_bytes()).decode()
    if home is not None:
        text = text.replace(_HOME, str(home))
    connection = sqlite3.connect(path)
    connection.executescript(text)
    connection.close()


def restore_home(home: Path) -> None:
    """Writes the databases of all services into a home."""
    databases = home / "databases"
    databases.mkdir(parents=True)
    for dump in FOLDER.glob("*.sql.gz"):
        name = dump.name.removesuffix(".sql.gz")
        restore_database(name, databases / f"{name}.sqlite", home=home)


def recorded_decisions() -> dict[str, dict[str, Any]]:
    """Returns what the old code decides when each of its searches continues, by name."""
    decisions: dict[str, dict[str, Any]] = json.loads(
        gzip.decompress((FOLDER / "decisions.json.gz").read_bytes())
    )
    return decisions
