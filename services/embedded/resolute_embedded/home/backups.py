"""Creates, restores and adopts backups of a home, and upgrades databases."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from resolute.errors import FailedPreconditionError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.home.database_move import postgresql_url
from resolute_embedded.home.identity import record_identity
from resolute_embedded.home.incarnation import begin_home, begin_incarnation, take_over_checkpoints
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.home.turns import served_alone
from resolute_engines.kit.run_directories.container import containers_in
from resolute_serving.server.bootstrap import upgrade


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
        upgrade(blueprint, url or state.databases.url(blueprint.name))
    return names


def back_up(state: StateDirectory, destination: Path) -> None:
    """Copies databases, signing key and identity of a home, also while it is served; checkpoints stay.

    The experiments database is copied first: what the others know beyond it is reported again, or is history.

    Args:
        state: The home.
        destination: A directory that does not exist yet.

    Raises:
        FailedPreconditionError: There is nothing to back up, or the destination exists.
    """
    if not state.databases.exist:
        raise FailedPreconditionError(
            f"{state.home.path} holds no cluster; let RESOLUTE_HOME name the one to back up"
        )
    if state.databases.are_moved:
        raise FailedPreconditionError(
            f"the databases of {state.home.path} are in PostgreSQL: back them up by its own means, such as "
            "pg_dump, and copy the rest of the home; `resolute adopt-copy` makes a home of both"
        )
    if destination.exists():
        raise FailedPreconditionError(f"{destination} exists already; name a directory that does not")
    (destination / "databases").mkdir(parents=True, mode=0o700)
    for name in sorted(
        (path.name for path in state.databases.files.glob("*.sqlite")), key=_experiments_first
    ):
        _copy_database(state.databases.files / name, destination / "databases" / name)
    shutil.copytree(state.data, destination / "data")
    # Last: without it this is no backup.
    shutil.copy2(state.cluster_id.path, destination / state.cluster_id.path.name)


def restore(source: Path, state: StateDirectory, *, take_over: bool) -> None:
    """Makes a home of a backup, for a new incarnation of the cluster.

    Args:
        source: What ``back_up`` made.
        state: A home that does not exist yet, or is empty.
        take_over: Whether the original is gone for good.

    Raises:
        FailedPreconditionError: The source is no backup, or the home is not empty.
    """
    path = state.home.path
    if not (source / "databases").is_dir() or not (source / state.cluster_id.path.name).is_file():
        raise FailedPreconditionError(f"{source} is not a backup; `resolute backup DIRECTORY` makes one")
    if path.exists() and any(path.iterdir()):
        raise FailedPreconditionError(f"{path} is not empty; let RESOLUTE_HOME name a new directory")
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    state.unfinished_file.touch()
    shutil.copytree(source, path, dirs_exist_ok=True)
    path.chmod(0o700)
    upgrade_databases("", state)
    begin_home(state, take_over=take_over)
    record_identity(state)
    state.unfinished_file.unlink()


def adopt_copy(state: StateDirectory, *, take_over: bool, url: str = "") -> None:
    """Makes a copied or moved home one of its own, for a new incarnation of the cluster. Safe to repeat.

    Processes that its run directories name are the original's and are left alone. Reports and lines that had
    not been delivered when it was copied are delivered to this cluster.

    Args:
        state: The home.
        take_over: Whether the original is gone for good.
        url: For a home whose databases are in PostgreSQL, the database restored from a dump of theirs; empty
            for the one that it has, which it can only take over.

    Raises:
        FailedPreconditionError: It or its database is being served, it holds no cluster, trials run in it, or
            it shares the database of its original.
        InvalidArgumentError: The URL is not one of PostgreSQL.
    """
    if not state.databases.exist:
        raise FailedPreconditionError(f"{state.home.path} holds no cluster; let RESOLUTE_HOME name the copy")
    database = _database_of_copy(state, url, take_over=take_over)
    lock = state.lock
    lock.acquire()
    try:
        running = state.live_runs()
        if running:
            raise FailedPreconditionError(
                f"{running} containers of trials run in {state.home.path}: it is not a copy. Start it with "
                "`resolute up`; if it was moved, move it back first"
            )
        for folder in state.runs.iterdir() if state.runs.is_dir() else ():
            for container in containers_in(state.runs, folder.name):
                container.disown()
        if database:
            state.databases.move_to(database)
        with served_alone(state):
            for blueprint in BLUEPRINTS:
                upgrade(blueprint, state.databases.url(blueprint.name))
            begin_home(state, take_over=take_over)
        state.forget_service()
        record_identity(state)
    finally:
        lock.release()


def _database_of_copy(state: StateDirectory, url: str, *, take_over: bool) -> str:
    """The URL that a copy is to have from now on; empty for the one that it has."""
    path = state.home.path
    if url and not state.databases.are_moved:
        raise FailedPreconditionError(f"the databases of {path} are files of its own; leave out --url")
    if state.databases.are_moved and not (take_over or url):
        raise FailedPreconditionError(
            f"the databases of {path} are in PostgreSQL, where its original uses them: add --take-over if it "
            "is gone for good, or let --url name a database that was restored from a dump of theirs"
        )
    return postgresql_url(url).render_as_string(hide_password=False) if url else ""


def begin_restored(url: str, *, take_over: bool) -> None:
    """Makes the databases of services that run alone those of a new incarnation. The services do not run.

    Args:
        url: One PostgreSQL database for all services, a schema each, restored from a dump.
        take_over: Whether the original is gone for good.
    """
    for blueprint in BLUEPRINTS:
        upgrade(blueprint, url)
    begin_incarnation(lambda _: url, take_over=take_over)


def take_over(url: str, state: StateDirectory) -> int:
    """Makes the checkpoints that a restored or copied cluster has inherited its own, also while it is served.

    Args:
        url: One PostgreSQL database for all services; empty for the SQLite files of the home.
        state: The home.

    Returns:
        How many there were.

    Raises:
        FailedPreconditionError: The home holds no cluster.
    """
    if not url and not state.databases.exist:
        raise FailedPreconditionError(
            f"{state.home.path} holds no cluster; let RESOLUTE_HOME name it, or give its database by --url"
        )
    return take_over_checkpoints((lambda _: url) if url else state.databases.url)


def _experiments_first(name: str) -> tuple[bool, str]:
    return not name.startswith("experiments."), name


def _copy_database(source: Path, destination: Path) -> None:
    with closing(sqlite3.connect(source)) as original, closing(sqlite3.connect(destination)) as copy:
        # In one step: between steps, each write of a service would make it begin again.
        original.backup(copy)
    destination.chmod(0o600)


def _require_stopped(state: StateDirectory) -> None:
    if state.lock.is_held():
        raise FailedPreconditionError(
            f"a cluster serves {state.home.path}, and upgrades its databases itself when it starts; "
            "stop it first with `resolute down`"
        )
