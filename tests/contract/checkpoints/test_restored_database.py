"""A PostgreSQL database that was restored from a dump begins a new incarnation before services use it."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from support.databases.postgres import PostgresServer

from resolute.client.connection.home import Home
from resolute_checkpoints.domain.checkpoint import Checkpoint, DirectoryStorage, Owner, State
from resolute_checkpoints.store import records
from resolute_checkpoints.store.schema import checkpoints
from resolute_embedded.home.backups import begin_restored, take_over
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.database.engine import create_engine


def test_checkpoints_in_a_restored_database_are_inherited_until_they_are_taken_over(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url, nowhere = postgres_server.clean_database(), StateDirectory(Home(tmp_path / "none"))
    begin_restored(url, take_over=True)
    engine = create_engine(url, name="checkpoints", writes=True)

    def inherited() -> list[bool]:
        with engine.begin() as connection:
            return list(connection.execute(sa.select(checkpoints.c.inherited)).scalars())

    try:
        with engine.begin() as connection:
            checkpoint = Checkpoint(
                checkpoint_id="c",
                state=State.UPLOADING,
                owner=Owner(),
                storage=DirectoryStorage("/checkpoints"),
                create_time=1.0,
            )
            assert records.insert(connection, checkpoint)
        begin_restored(url, take_over=True)
        assert inherited() == [False]
        begin_restored(url, take_over=False)
        assert inherited() == [True]
        assert take_over(url, nowhere) == 1
        assert inherited() == [False]
        assert take_over(url, nowhere) == 0
    finally:
        engine.dispose()
