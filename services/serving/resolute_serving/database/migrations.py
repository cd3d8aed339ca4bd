"""Migrates a service's database to the schema that its code needs. This is always an explicit act.

A new database gets the current schema at once, by ``migrations/initial.py`` of the service. An older one goes
through the missing revisions of ``migrations/versions``.
"""

from __future__ import annotations

import importlib
import importlib.resources
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from resolute.errors import FailedPreconditionError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "head"
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it: a start that has nothing to apply does without Alembic, whose import takes longer."""

FOR_NEWER = "start it with that version, or restore a backup from before: `resolute restore`"
"""What to do about a database of a newer version."""
_CURRENT = sa.select(_VERSION.c.version_num)


class NewerDatabaseError(FailedPreconditionError):
    """A newer version of Resolute has migrated the database, so this version cannot read it."""


def upgrade(engine: Engine, *, package: str, schema: str, revision: str = HEAD) -> None:
    """Applies every migration that is missing. Safe to repeat, and on PostgreSQL at the same time.

    Args:
        engine: Where to.
        package: The service's package, which has the migrations.
        schema: The schema on PostgreSQL; made if it is not there.
        revision: The last one that is applied.

    Raises:
        NewerDatabaseError: A newer version has been there.
    """
    current = _revision(engine)
    _refuse_newer(current, package)
    if revision == HEAD and current == newest_revision(package):
        return
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"resolute.{schema}"}
            )
            connection.execute(sa.text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
        _VERSION.create(connection, checkfirst=True)
        if revision == HEAD and connection.execute(_CURRENT).scalar_one_or_none() is None:
            importlib.import_module(f"{package}.migrations.initial").create(connection)
            connection.execute(sa.insert(_VERSION), {"version_num": newest_revision(package)})
            return
        from alembic import command

        config = _config(package)
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def check(engine: Engine, *, package: str) -> None:
    """Makes sure that the database has the newest schema.

    Raises:
        FailedPreconditionError: It has an older or a newer one.
    """
    newest, current = newest_revision(package), _revision(engine)
    _refuse_newer(current, package)
    if current != newest:
        raise FailedPreconditionError(
            f"the database of {package} is at revision {current or 'none'} and this version needs {newest}; "
            "run `resolute db upgrade`"
        )


def is_empty(engine: Engine) -> bool:
    """Tells whether no migration has been applied to a database."""
    return _revision(engine) is None


def newest_revision(package: str) -> str:
    """The revision that a service's code wants: the number of the last file of its migrations."""
    files = (importlib.resources.files(package) / "migrations" / "versions").iterdir()
    return max(file.name for file in files if file.name[0].isdigit()).partition("_")[0]


def _refuse_newer(current: str | None, package: str) -> None:
    newest = newest_revision(package)
    if current is not None and current > newest:
        raise NewerDatabaseError(
            f"the database of {package} is at revision {current} of a newer version of Resolute, and this "
            f"one knows those up to {newest}; {FOR_NEWER}"
        )


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        try:
            return connection.execute(_CURRENT).scalar_one_or_none()
        except DBAPIError as error:
            if connection.invalidated or not _is_missing(error):
                raise
            return None


def _is_missing(error: DBAPIError) -> bool:
    """Whether a statement failed for want of its table: SQLite says so in words, PostgreSQL by a code."""
    return "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", "") == "42P01"


def _config(package: str) -> Config:
    from alembic.config import Config

    config = Config()
    folder = importlib.resources.files(package) / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config
