"""Checks that the databases of a home are intact, have the current schema, and are not ahead of the clock."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import OperationalError

from resolute.errors import FailedPreconditionError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.doctor.findings import Finding, fault, good, warning
from resolute_embedded.home.read_only import open_read_only
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine
from resolute_serving.server.service import Blueprint

_CLOCK_TOLERANCE = 60.0
_LARGE_LOG = 1 << 30
_RESTORE = "stop the cluster and restore a backup: `resolute restore`"


def check_databases(state: StateDirectory) -> Iterator[Finding]:
    """Looks at the database of every service."""
    if state.databases.are_moved:
        for blueprint in BLUEPRINTS:
            if blueprint.package:
                yield _schema(f"database of {blueprint.name}", blueprint, state)
        return
    for blueprint in BLUEPRINTS:
        path = state.databases.files / f"{blueprint.name}.sqlite"
        if not blueprint.package or not path.exists():
            continue
        subject = f"database of {blueprint.name}"
        damage = _damage(path)
        if damage:
            yield fault(subject, damage, remedy=_RESTORE)
            continue
        yield _schema(subject, blueprint, state)
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > _LARGE_LOG:
            size = log.stat().st_size / (1 << 30)
            yield warning(
                subject,
                f"its write-ahead log has {size:.1f} GiB",
                remedy="stop and start the cluster: `resolute down --keep-trials`, `resolute up`",
            )
    yield from _inherited(state)
    yield from _clock(state)


def _damage(path: Path) -> str:
    try:
        with closing(open_read_only(path)) as connection:
            (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return f"{path} cannot be read: {error}"
    return "" if result == "ok" else f"{path} is damaged: {result}"


def _schema(subject: str, blueprint: Blueprint, state: StateDirectory) -> Finding:
    engine = create_engine(state.databases.url(blueprint.name), name=blueprint.name, writes=False)
    try:
        migrations.check(engine, package=blueprint.package)
    except OperationalError as error:
        return fault(
            subject,
            f"it does not answer: {str(error.orig).splitlines()[0]}",
            remedy="start PostgreSQL, or look for it there",
        )
    except migrations.NewerDatabaseError:
        return fault(subject, "it is of a newer version of Resolute", remedy=migrations.FOR_NEWER)
    except FailedPreconditionError as error:
        return warning(
            subject, str(error), remedy="`resolute up` upgrades it, and so does `resolute db upgrade`"
        )
    finally:
        engine.dispose()
    return good(
        subject, "of the newest schema" if state.databases.are_moved else "whole, and of the newest schema"
    )


def _inherited(state: StateDirectory) -> Iterator[Finding]:
    """Says which files wait for a take-over."""
    path = state.databases.files / "checkpoints.sqlite"
    if not path.exists():
        return
    try:
        with closing(open_read_only(path)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM checkpoints WHERE inherited").fetchone()
    except sqlite3.DatabaseError:
        return
    if count:
        yield good(
            "inherited checkpoints",
            f"the files of {count} are kept for the original of this cluster; if it is gone for good, "
            "`resolute take-over` makes them this cluster's own",
        )


def _clock(state: StateDirectory) -> Iterator[Finding]:
    path = state.databases.files / "experiments.sqlite"
    if not path.exists():
        return
    try:
        with closing(open_read_only(path)) as connection:
            (newest,) = connection.execute("SELECT max(time) FROM audit").fetchone()
    except sqlite3.DatabaseError:
        return
    ahead = (newest or 0.0) - time.time()
    if ahead > _CLOCK_TOLERANCE:
        yield fault(
            "clock",
            f"the newest record is {ahead:.0f} s ahead of this machine's clock",
            remedy="set the clock, by NTP best: deadlines and tokens depend on it",
        )
    else:
        yield good("clock", "not behind what was recorded")
