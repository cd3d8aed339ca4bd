"""What operators do to a home besides serving it: upgrade its databases, back it up, restore it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.state_directory import StateDirectory
from resolute_serving.server.bootstrap import upgrade

_SINGLE_FILES = ("cluster.json",)
_PAGES_AT_A_TIME = 4096


def upgrade_databases(url: str, state: StateDirectory) -> list[str]:
    """Brings every service's database to its newest schema.

    Args:
        url: One PostgreSQL database for all services, a schema each; empty for the SQLite files of the home.
        state: The home.

    Returns:
        Names of the services whose databases are up to date now.

    Raises:
        FailedPreconditionError: The home is being served, and its databases are in use.
    """
    if not url:
        _require_stopped(state)
    names = [blueprint.name for blueprint in BLUEPRINTS if blueprint.package]
    for blueprint in BLUEPRINTS:
        upgrade(blueprint, url or state.database_url(blueprint.name))
    return names


def back_up(state: StateDirectory, destination: Path) -> None:
    """Copies databases, signing key and identity of a home, also while it is served; checkpoints stay.

    The experiments database is copied first: what the others know beyond it is told again, or is history.

    Args:
        state: The home.
        destination: A directory that does not exist yet.

    Raises:
        FailedPreconditionError: There is nothing to back up, or the destination exists.
    """
    if not state.databases.is_dir():
        raise FailedPreconditionError(
            f"{state.home.path} holds no cluster; let RESOLUTE_HOME name the one to back up"
        )
    if destination.exists():
        raise FailedPreconditionError(f"{destination} exists already; name a directory that does not")
    (destination / "databases").mkdir(parents=True, mode=0o700)
    for name in sorted((path.name for path in state.databases.glob("*.sqlite")), key=_experiments_first):
        _copy_database(state.databases / name, destination / "databases" / name)
    shutil.copytree(state.data, destination / "data")
    for name in _SINGLE_FILES:
        shutil.copy2(state.home.path / name, destination / name)


def restore(source: Path, home: Home) -> None:
    """Makes a home of a backup.

    Runs that were under way when the backup was made are found lost, and continue from their last checkpoint.

    Args:
        source: What ``back_up`` made.
        home: A home that does not exist yet, or is empty.

    Raises:
        FailedPreconditionError: The source is no backup, or the home is not empty.
    """
    if not (source / "databases").is_dir() or not (source / "cluster.json").is_file():
        raise FailedPreconditionError(f"{source} is no backup; `resolute backup DIRECTORY` makes one")
    if home.path.exists() and any(home.path.iterdir()):
        raise FailedPreconditionError(f"{home.path} is not empty; let RESOLUTE_HOME name a new directory")
    shutil.copytree(source, home.path, dirs_exist_ok=True)
    home.path.chmod(0o700)


def _experiments_first(name: str) -> tuple[bool, str]:
    return not name.startswith("experiments."), name


def _copy_database(source: Path, destination: Path) -> None:
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(destination)) as copy:
        original.backup(copy, pages=_PAGES_AT_A_TIME)
    destination.chmod(0o600)


def _require_stopped(state: StateDirectory) -> None:
    if state.lock.is_held():
        raise FailedPreconditionError(
            f"a cluster serves {state.home.path}, and upgrades its databases itself when it starts; "
            "stop it first with `resolute down`"
        )
