"""A new database gets at once what the revisions lead an older one to."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.database import migrations
from resolute_serving.database.engine import create_engine

SERVICES = [blueprint.name for blueprint in BLUEPRINTS if blueprint.package]


@pytest.mark.parametrize("service", SERVICES)
def test_a_new_database_is_as_one_that_went_through_every_revision(database_url: str, service: str) -> None:
    names = {"package": f"resolute_{service}", "schema": service}
    with emptied(database_url, service) as engine:
        migrations.upgrade(engine, **names, revision="0001")
        migrations.upgrade(engine, **names)
        migrated = described(engine)
    with emptied(database_url, service) as engine:
        migrations.upgrade(engine, **names)
        assert described(engine) == migrated
        migrations.check(engine, package=names["package"])


def test_one_of_a_newer_version_is_left_alone_and_the_refusal_says_what_to_do(database_url: str) -> None:
    names = {"package": "resolute_logs", "schema": "logs"}
    with emptied(database_url, "logs") as engine:
        migrations.upgrade(engine, **names)
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        refusal = r"revision 9999 of a newer version.*; start it with that"
        with pytest.raises(migrations.NewerDatabaseError, match=refusal):
            migrations.upgrade(engine, **names)
        with pytest.raises(migrations.NewerDatabaseError, match=refusal):
            migrations.check(engine, package=names["package"])


@contextmanager
def emptied(url: str, service: str) -> Iterator[sa.Engine]:
    engine = create_engine(url, name=service, writes=True)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text(f'DROP SCHEMA IF EXISTS "{service}" CASCADE'))
        else:
            tables = sa.MetaData()
            tables.reflect(connection)
            tables.drop_all(connection)
    yield engine
    engine.dispose()


def described(engine: sa.Engine) -> dict[str, Any]:
    """Says of each table what the database keeps of it, and what it holds but for times."""
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        return {name: described_table(connection, inspector, name) for name in inspector.get_table_names()}


def described_table(connection: sa.Connection, inspector: sa.Inspector, name: str) -> dict[str, Any]:
    columns = {
        column.pop("name"): {**column, "type": repr(column["type"])}
        for column in map(dict, inspector.get_columns(name))
    }
    rows = connection.execute(sa.text(f'SELECT * FROM "{name}"')).mappings()
    return {
        "columns": columns,
        # By name it differs where a table was made beside its predecessor.
        "primary key": inspector.get_pk_constraint(name)["constrained_columns"],
        "unique": in_order(inspector.get_unique_constraints(name)),
        "foreign keys": in_order(inspector.get_foreign_keys(name)),
        "checks": in_order(inspector.get_check_constraints(name)),
        "indexes": in_order(inspector.get_indexes(name)),
        "storage": storage(connection, name),
        "rows": [{key: value for key, value in row.items() if key != "created_at"} for row in rows],
    }


def in_order(reflected: Any) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True, default=str) for one in reflected)


def storage(connection: sa.Connection, table: str) -> Any:
    """What reflection leaves out."""
    if connection.dialect.name == "sqlite":
        text = connection.execute(
            sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table"), {"table": table}
        ).scalar_one()
        return "AUTOINCREMENT" in text
    query = (
        "SELECT attname, attstorage FROM pg_attribute"
        " WHERE attrelid = CAST(:table AS regclass) AND attnum > 0 AND NOT attisdropped"
    )
    return {row.attname: row.attstorage for row in connection.execute(sa.text(query), {"table": table})}


@pytest.mark.parametrize("service", SERVICES)
def test_the_newest_revision_by_names_of_files_is_that_of_alembic(service: str) -> None:
    package = f"resolute_{service}"
    scripts = ScriptDirectory(str(importlib.resources.files(package) / "migrations"))
    assert migrations.newest_revision(package) == scripts.get_current_head()
