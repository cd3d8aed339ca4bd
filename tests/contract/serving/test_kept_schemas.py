"""What tests on PostgreSQL leave to each other: a schema without rows, as long as it is as it was made."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from support.databases.postgres import PostgresServer
from support.databases.prepared import migrate

from resolute_serving.database.engine import create_engine

SEEN = sa.text("SELECT 'experiments.users'::regclass::oid, (SELECT count(*) FROM experiments.users)")


def after(server: PostgresServer, *changes: str) -> tuple[int, int]:
    """Makes the schema of the experiments service and changes it; gives a table's number and rows before."""
    engine = create_engine(server.clean_database(), name="experiments", writes=True)
    migrate(engine, package="resolute_experiments", schema="experiments")
    with engine.begin() as connection:
        number, rows = connection.execute(SEEN).one()
        for change in changes:
            connection.execute(sa.text(change))
    engine.dispose()
    return number, rows


def test_a_schema_is_kept_with_the_rows_of_a_new_one(postgres_server: PostgresServer) -> None:
    after(postgres_server)  # This one is made by the migrations.
    change = "UPDATE experiments.alembic_version SET version_num = '0'"
    made, rows = after(postgres_server, "DELETE FROM experiments.users", change)
    assert rows
    assert after(postgres_server) == (made, rows)


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE experiments.users ADD COLUMN more integer",
        "DROP TABLE experiments.audit",
        "CREATE TABLE experiments.more (id integer)",
        "CREATE INDEX more ON experiments.users (name, role)",
        "ANALYZE experiments.users",
        "ALTER TABLE experiments.trials DISABLE TRIGGER ALL",
        "CREATE FUNCTION experiments.more() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_one_that_was_changed_is_made_anew(postgres_server: PostgresServer, change: str) -> None:
    after(postgres_server)
    made, rows = after(postgres_server)
    assert after(postgres_server, change) == (made, rows)
    other, rows_of_other = after(postgres_server)
    assert (other != made, rows_of_other) == (True, rows)
