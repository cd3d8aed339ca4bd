"""Homes of older versions that are kept with the tests."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "fixtures" / "home_before_0_1_0"
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


_PLACE = "@HOME@"
"""Stands for the path of a home in its packed databases."""
_LOGS = {"up.log", "up.out", "supervisor-parent.log", "fork-server.log"}
_OF_THE_MACHINE = {"lock", "port", "home.json", "runs", *_LOGS}
"""What a home holds for the machine and the process that serve it."""


def pack_home(home: Path, archive: Path) -> None:
    """Packs a home that nothing serves: its databases as text, all other files as they are.

    Args:
        home: The home.
        archive: The file, a `.tar.xz`.
    """
    with tarfile.open(archive, "w:xz") as packed:
        for path in sorted(home.rglob("*")):
            name = path.relative_to(home)
            if not path.is_file() or name.parts[0] in _OF_THE_MACHINE or path.name.endswith(("-wal", "-shm")):
                continue
            data = path.read_bytes()
            if path.suffix == ".sqlite":
                with closing(sqlite3.connect(path)) as connection:
                    text = "\n".join(connection.iterdump())
                name, data = name.with_suffix(".sql"), text.replace(str(home), _PLACE).encode()
            member = tarfile.TarInfo(str(name))
            member.size, member.mode = len(data), 0o600
            packed.addfile(member, io.BytesIO(data))


def unpack_home(archive: Path, home: Path) -> None:
    """Writes a packed home.

    Args:
        archive: What `pack_home` made.
        home: A new folder.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(home, filter="data")
    for dump in (home / "databases").glob("*.sql"):
        with closing(sqlite3.connect(dump.with_suffix(".sqlite"))) as connection:
            connection.executescript(dump.read_text().replace(_PLACE, str(home)))
        dump.unlink()


def packed_homes() -> list[Path]:
    """Returns the packed homes of older versions that are kept with the tests."""
    return sorted((FOLDER.parent / "homes").glob("*.tar.xz"))
