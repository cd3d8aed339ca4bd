"""The contract of models, over the wire."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from support.services.in_process import serving

from resolute.api.checkpoints.v1 import model_pb2
from resolute.api.checkpoints.v1 import models_service_pb2 as messages
from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceStub
from resolute.contracts.values import to_value
from resolute.errors import AlreadyExistsError, ConflictError, InvalidArgumentError
from resolute_checkpoints.blueprint import BLUEPRINT
from resolute_serving.context import Role, User

if TYPE_CHECKING:
    from resolute.api.checkpoints.v1.models_service_pb2_grpc import ModelsServiceAsyncStub

KEY = messages.ModelKey(name="digits")


def over_the_wire(path: Path, scenario: Callable[[ModelsServiceAsyncStub], Awaitable[None]]) -> None:
    async def run() -> None:
        async with serving([BLUEPRINT], path) as running:
            token = running.signer.user(User("ada", Role.EDITOR, user_id=7), ttl=600)
            channel = running.channel(token)
            try:
                await scenario(cast("ModelsServiceAsyncStub", ModelsServiceStub(channel)))
            finally:
                await channel.close()

    asyncio.run(run())


def creation(name: str = "digits", *, request_id: str = "", **fields: Any) -> messages.CreateModelRequest:
    model = model_pb2.Model(name=name, **fields)
    return messages.CreateModelRequest(request_id=request_id, model=model)


def test_a_repeated_creation_returns_the_same_model(tmp_path: Path) -> None:
    async def scenario(stub: ModelsServiceAsyncStub) -> None:
        request = creation(request_id=str(uuid.uuid4()), workspace_id=5)
        first = (await stub.CreateModel(request)).model
        assert (first.owner_id, first.owner_name, first.workspace_id) == (7, "ada", 5)
        assert (await stub.CreateModel(request)).model == first
        request.model.name = "letters"
        with pytest.raises(AlreadyExistsError, match="used for another request"):
            await stub.CreateModel(request)
        with pytest.raises(AlreadyExistsError, match="choose another name"):
            await stub.CreateModel(creation(request_id=str(uuid.uuid4())))

    over_the_wire(tmp_path, scenario)


def test_an_update_changes_the_fields_of_its_mask_and_patches_metadata(tmp_path: Path) -> None:
    async def scenario(stub: ModelsServiceAsyncStub) -> None:
        await stub.CreateModel(creation(notes="long", labels=["a"], metadata=to_value({"x": 1, "y": 2})))
        request = messages.UpdateModelRequest(
            key=KEY,
            model=model_pb2.Model(description="reads digits", notes="ignored"),
            update_mask=FieldMask(paths=["description", "labels"]),
            metadata_patch=to_value({"x": None, "z": 3}),
        )
        model = (await stub.UpdateModel(request)).model
        assert (model.description, model.notes, list(model.labels)) == ("reads digits", "long", [])
        assert model.metadata == to_value({"y": 2, "z": 3})
        for paths, problem in ((["number"], "can be updated are archived, description"), ([], "is empty")):
            wrong = messages.UpdateModelRequest(key=KEY, update_mask=FieldMask(paths=paths))
            with pytest.raises(InvalidArgumentError, match=problem):
                await stub.UpdateModel(wrong)

    over_the_wire(tmp_path, scenario)


def test_an_update_of_what_has_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    async def scenario(stub: ModelsServiceAsyncStub) -> None:
        seen = (await stub.CreateModel(creation())).model
        request = messages.UpdateModelRequest(
            key=KEY,
            model=model_pb2.Model(notes="mine"),
            update_mask=FieldMask(paths=["notes"]),
            etag=seen.etag,
        )
        assert (await stub.UpdateModel(request)).model.etag != seen.etag
        with pytest.raises(ConflictError, match="changed meanwhile"):
            await stub.UpdateModel(request)

    over_the_wire(tmp_path, scenario)


def test_models_are_filtered_and_ordered_over_pages(tmp_path: Path) -> None:
    async def scenario(stub: ModelsServiceAsyncStub) -> None:
        for name, workspace_id, labels in (("a", 1, ["x", "y"]), ("b", 2, ["x"]), ("c", 2, ["y", "X"])):
            await stub.CreateModel(creation(name, workspace_id=workspace_id, labels=labels))

        async def listed(**fields: Any) -> str:
            request, found = messages.ListModelsRequest(page_size=1, **fields), ""
            while True:
                page = await stub.ListModels(request)
                found += "".join(model.name for model in page.models)
                request.page_token = page.next_page_token
                if not request.page_token:
                    return found

        assert await listed() == "abc"
        assert await listed(order_by="number desc") == "cba"
        assert await listed(workspace_ids=[2]) == "bc"
        assert await listed(owner_ids=[7], names=["a", "c"]) == "ac"
        assert await listed(owner_ids=[8]) == ""
        assert await listed(required_labels=["x", "y"]) == "a"
        assert await listed(required_labels=["X"]) == "c"
        # A label is no part of another one, whatever characters are before that part.
        await stub.CreateModel(creation("d", workspace_id=2, labels=['not "x', 'z"\\', "é, ü"]))
        assert await listed(required_labels=["x"]) == "ab"
        assert await listed(required_labels=["\\"]) == ""
        assert await listed(required_labels=['z"\\', "é, ü"]) == "d"
        assert await listed(archived=True) == ""
        with pytest.raises(InvalidArgumentError, match="create_time, name, number, update_time"):
            await listed(order_by="size")

    over_the_wire(tmp_path, scenario)
