"""Rows of earlier releases after the upgrade of their database."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Any

import sqlalchemy as sa
from support.clocks import ManualClock

from resolute_checkpoints.domain.model import Changes, ModelKey, NewVersion
from resolute_checkpoints.registry.models import Models
from resolute_checkpoints.store import identities, usage
from resolute_serving.database import migrations
from resolute_serving.database.engine import Database

CHECKPOINT, MODEL = str(uuid.uuid4()), str(uuid.uuid4())
TEXTS = {"description": "", "notes": "", "labels": "[]", "metadata": "{}"}


def _fill(connection: sa.Connection) -> None:
    old = sa.MetaData()
    old.reflect(connection)

    def insert(table: str, **values: Any) -> None:
        connection.execute(old.tables[table].insert(), values)

    insert(
        "checkpoints",
        checkpoint_id=CHECKPOINT,
        state="completed",
        trial_id="",
        experiment_id="",
        run=0,
        workspace="vision",
        storage='{"kind": "directory", "path": "/data"}',
        metadata='{"steps_completed": 3}',
        manifest_digest="x",
        manifest_bytes=10,
        steps_completed=3,
        total_size=7,
        create_time=1.0,
        commit_time=2.0,
        list_time=2.0,
        removal_attempts=0,
        removal_claim=0,
        pinned=False,
        file_count=1,
    )
    insert("files", checkpoint_id=CHECKPOINT, position=0, path="m", size=7, digest="", doomed=False)
    insert(
        "models",
        model_id=MODEL,
        number=1,
        name="digits",
        workspace="vision",
        owner="ada",
        archived=False,
        next_version=2,
        create_time=1.0,
        update_time=1.0,
        **TEXTS,
    )
    insert(
        "model_versions",
        model_id=MODEL,
        version=1,
        request_id=str(uuid.uuid4()),
        checkpoint_id=CHECKPOINT,
        name="",
        comment="first",
        notes="",
        labels="[]",
        metadata="{}",
        owner="eve",
        create_time=1.0,
    )


def test_rows_from_before_ids_and_revisions_get_both(database_url: str) -> None:
    class Request:
        request_id = ""

    async def scenario(database: Database) -> None:
        models, key = Models(database=database, clock=ManualClock()), ModelKey(name="digits")
        before = await models.get(key)
        assert (before.workspace_id, before.author.user_id, before.author.name) == (None, None, "ada")
        for ids in ({"vision": 5, "ada": 7}, {"vision": 6, "ada": 8}):
            await database.write(partial(identities.assign, workspaces=ids, users=ids))
            model = await models.get(key)
            assert (model.workspace_id, model.author.user_id, model.revision) == (5, 7, 0), "ids stay"
        assert await database.read(lambda c: usage.of_workspace(c, 5)) == 7
        version = await models.version(key, 1)
        assert (version.author.user_id, version.author.name, version.comment) == (None, "eve", "first")
        assert (await models.update_version(key, 1, Changes(values={"name": "golden"}))).revision == 1
        assert (await models.create_version(key, NewVersion(checkpoint_id=CHECKPOINT), Request())).number == 2

    database = Database(database_url, name="checkpoints")
    try:
        migrations.upgrade(
            database.engine, package="resolute_checkpoints", schema="checkpoints", revision="0004"
        )
        with database.engine.begin() as connection:
            _fill(connection)
        migrations.upgrade(database.engine, package="resolute_checkpoints", schema="checkpoints")
        migrations.check(database.engine, package="resolute_checkpoints")
        asyncio.run(scenario(database))
    finally:
        database.close()
