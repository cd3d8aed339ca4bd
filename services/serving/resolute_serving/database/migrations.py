"""Brings a service's database to the schema that its code wants. Always an explicit act.

A new database gets the newest schema at once, by ``migrations/initial.py`` of the service; an older one goes
through the revisions of ``migrations/versions`` that it lacks.
"""

from __future__ import annotations

import importlib
import importlib.resources

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Engine

from resolute.errors import FailedPreconditionError


def upgrade(engine: Engine, *, package: str, schema: str, revision: str = "head") -> None:
    """Applies every migration that is missing. Safe to repeat, and on PostgreSQL at the same time.

    Args:
        engine: Where to.
        package: The service's package, which has the migrations.
        schema: The schema on PostgreSQL; made if it is not there.
        revision: The last one that is applied.
    """
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(
                sa.text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"resolute.{schema}"}
            )
            connection.execute(sa.text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
        config = _config(package)
        config.attributes["connection"] = connection
        if revision == "head" and MigrationContext.configure(connection).get_current_revision() is None:
            importlib.import_module(f"{package}.migrations.initial").create(connection)
            command.stamp(config, revision)
        else:
            command.upgrade(config, revision)


def check(engine: Engine, *, package: str) -> None:
    """Makes sure that the database has the newest schema.

    Raises:
        FailedPreconditionError: It has an older or a newer one.
    """
    head = ScriptDirectory.from_config(_config(package)).get_current_head()
    current = _revision(engine)
    if current != head:
        raise FailedPreconditionError(
            f"the database of {package} is at revision {current or 'none'} and this version wants {head}; "
            "run `resolute db upgrade`"
        )


def is_empty(engine: Engine) -> bool:
    """Tells whether no migration has been applied to a database."""
    return _revision(engine) is None


def _revision(engine: Engine) -> str | None:
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _config(package: str) -> Config:
    config = Config()
    folder = importlib.resources.files(package) / "migrations"
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    return config
