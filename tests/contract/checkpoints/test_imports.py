"""Checkpoints and models of other clusters on both databases: registered where they lie, once."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from support.services.checkpoints import EXPERIMENT, SERVICE, TRIAL, registry_harness

from resolute.api.checkpoints.v1 import (
    checkpoint_pb2,
    checkpoints_service_pb2,
    model_pb2,
    models_service_pb2,
    storage_pb2,
)
from resolute.contracts.times import to_timestamp
from resolute.contracts.values import to_value
from resolute.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from resolute_checkpoints.domain.checkpoint import State
from resolute_checkpoints.domain.model import ModelKey
from resolute_checkpoints.registry.models import Models
from resolute_checkpoints.servicers.import_messages import to_imported_checkpoints, to_imported_model
from resolute_checkpoints.store.schema import audit

OLD = "11111111-1111-4111-8111-111111111111"


def checkpoint(root: Path, **changes: Any) -> checkpoint_pb2.Checkpoint:
    told = {
        "checkpoint_id": OLD,
        "state": checkpoint_pb2.CHECKPOINT_STATE_COMPLETED,
        "trial_id": TRIAL,
        "experiment_id": EXPERIMENT,
        "files": [checkpoint_pb2.File(path="code/"), checkpoint_pb2.File(path="w.pt", size=3)],
        "metadata": to_value({"latest_batch": 40, "framework": "torch"}),
        "create_time": to_timestamp(100.0),
        "commit_time": to_timestamp(101.0),
        "storage": storage_pb2.Storage(directory=storage_pb2.Storage.Directory(path=str(root))),
    }
    return checkpoint_pb2.Checkpoint(**{**told, **changes})


def request(
    *checkpoints: checkpoint_pb2.Checkpoint, copied: bool = False
) -> checkpoints_service_pb2.ImportCheckpointsRequest:
    return checkpoints_service_pb2.ImportCheckpointsRequest(
        checkpoints=checkpoints, workspace_id=4, workspace_name="lab", copied=copied
    )


def test_a_checkpoint_is_registered_once_where_it_lies(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            wanted = to_imported_checkpoints(request(checkpoint(root)))
            assert [await w.imports.checkpoints(wanted) for _ in range(2)] == [1, 0]
            found = await w.registry.get(OLD, principal=SERVICE)
            assert (found.state, found.steps_completed, found.total_size) == (State.COMPLETED, 40, 3)
            assert (found.create_time, found.commit_time) == (100.0, 101.0)
            assert (found.owner.workspace, found.owner.workspace_id) == ("lab", 4)
            assert [file.path for file in found.files] == ["code/", "w.pt"]
            with pytest.raises(FailedPreconditionError, match="take-over"):
                await w.deletions.delete([OLD], [], principal=SERVICE)

    asyncio.run(scenario())


def test_a_copy_must_be_whole_and_is_this_clusters_own(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            wanted = to_imported_checkpoints(request(checkpoint(root), copied=True))
            with pytest.raises(DataLossError, match=r"w\.pt"):
                await w.imports.checkpoints(wanted)
            (root / OLD / "code").mkdir(parents=True)
            (root / OLD / "w.pt").write_bytes(b"four")
            with pytest.raises(DataLossError, match=r"w\.pt"):
                await w.imports.checkpoints(wanted)
            (root / OLD / "w.pt").write_bytes(b"abc")
            assert await w.imports.checkpoints(wanted) == 1
            await w.deletions.delete([OLD], [], principal=SERVICE)

    asyncio.run(scenario())


def test_one_that_was_deleted_there_is_known_and_has_no_files(url: str, root: Path) -> None:
    deleted = checkpoint(root, state=checkpoint_pb2.CHECKPOINT_STATE_DELETED, files=[])

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            assert await w.imports.checkpoints(to_imported_checkpoints(request(deleted))) == 1
            found = await w.registry.get(OLD, principal=SERVICE)
            assert (found.state, found.files) == (State.DELETED, ())

    asyncio.run(scenario())


def test_what_an_experiment_was_deleted_with_does_not_come_again(url: str, root: Path) -> None:
    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            await w.deletions.delete_experiment(EXPERIMENT)
            with pytest.raises(NotFoundError, match="was deleted"):
                await w.imports.checkpoints(to_imported_checkpoints(request(checkpoint(root))))

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "changes",
    [
        {"state": checkpoint_pb2.CHECKPOINT_STATE_UPLOADING},
        {"state": checkpoint_pb2.CHECKPOINT_STATE_DELETED},
        {"files": [checkpoint_pb2.File(path="../up", size=1)]},
        {"metadata": to_value({"framework": "torch"})},
        {"trial_id": "seven"},
        {"storage": storage_pb2.Storage()},
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError):
        to_imported_checkpoints(request(checkpoint(tmp_path, **changes)))


def test_what_comes_twice_in_one_request_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"checkpoints\.checkpoint_id has .* twice"):
        to_imported_checkpoints(
            request(checkpoint(tmp_path), checkpoint(tmp_path, checkpoint_id=OLD.upper()))
        )
    with pytest.raises(InvalidArgumentError, match=r"versions\.number has 2 twice"):
        to_imported_model(model(str(uuid.uuid4()), 2, 5, 2))


def version(number: int) -> model_pb2.ModelVersion:
    return model_pb2.ModelVersion(
        number=number,
        checkpoint=checkpoint_pb2.Checkpoint(checkpoint_id=OLD),
        name=f"v{number}",
        owner_name="carol",
        create_time=to_timestamp(300.0 + number),
    )


def model(model_id: str, *numbers: int) -> models_service_pb2.ImportModelRequest:
    return models_service_pb2.ImportModelRequest(
        model=model_pb2.Model(
            model_id=model_id,
            name="best",
            owner_name="carol",
            owner_id=3,
            archived=True,
            create_time=to_timestamp(200.0),
            update_time=to_timestamp(250.0),
        ),
        versions=[version(number) for number in numbers],
    )


def test_a_model_keeps_the_numbers_of_its_versions(url: str, root: Path) -> None:
    model_id = str(uuid.uuid4())

    async def scenario() -> None:
        async with registry_harness(url, root) as w:
            imports, models = w.imports, Models(database=w.database, clock=w.clock)
            await imports.checkpoints(to_imported_checkpoints(request(checkpoint(root))))
            for numbers in ((2,), (2, 5), (2, 5)):
                found = await imports.model(to_imported_model(model(model_id, *numbers)))
            with w.database.engine.connect() as connection:
                rows = connection.execute(
                    sa.select(audit.c.detail).where(audit.c.action == "model.import").order_by(audit.c.time)
                ).scalars()
                assert [json.loads(detail) for detail in rows] == [{"count": 1}, {"count": 1}]
            assert (found.name, found.archived, found.version_count) == ("best", True, 2)
            assert (found.create_time, found.update_time) == (200.0, 250.0)
            assert (found.author.name, found.author.user_id) == ("carol", 3)
            last = await models.version(ModelKey(name="best"), None)
            assert (last.number, last.name, last.create_time) == (5, "v5", 305.0)
            with pytest.raises(AlreadyExistsError, match="another model"):
                await imports.model(to_imported_model(model(str(uuid.uuid4()))))
            unknown = model(model_id, 6)
            unknown.versions[0].checkpoint.checkpoint_id = str(uuid.uuid4())
            with pytest.raises(NotFoundError):
                await imports.model(to_imported_model(unknown))

    asyncio.run(scenario())
