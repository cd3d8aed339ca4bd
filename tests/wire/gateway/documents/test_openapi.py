"""The document of the calls in JSON."""

from __future__ import annotations

import asyncio
import json
import random
from collections import defaultdict
from typing import Any

import pytest
from faults.fuzz.bases import Bases
from faults.fuzz.world import World
from google.protobuf import json_format
from support.calls.contract_methods import methods, path
from support.services.gateway import gateway, need_http

from resolute.api.checkpoints.v1 import storage_pb2

need_http()

from jsonschema import Draft202012Validator  # noqa: E402
from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: E402


@pytest.fixture(scope="module")
def document() -> Any:
    async def fetch() -> Any:
        async with gateway("127.0.0.1:1") as http:
            return (await http.request("GET", "/openapi.json")).json()

    return asyncio.run(asyncio.wait_for(fetch(), 60))


def test_the_document_is_valid_and_has_every_call_with_one_answer(document: Any) -> None:
    assert not list(OpenAPIV31SpecValidator(document).iter_errors())
    unary = {path(one) for one in methods() if not one.client_streaming and not one.server_streaming}
    assert set(document["paths"]) == unary


def test_schemas_agree_with_what_is_read_and_written(document: Any) -> None:
    world = World(
        names=defaultdict(lambda: "a"), numbers=defaultdict(lambda: 1), storage=storage_pb2.Storage()
    )
    bases = Bases(world, random.Random(1))
    for method in methods():
        if method.client_streaming or method.server_streaming:
            continue
        schema = {**document, "$ref": f"#/components/schemas/{method.input_type.full_name}"}
        written = json.loads(json_format.MessageToJson(bases.request(method)))
        problems = list(Draft202012Validator(schema).iter_errors(written))
        assert not problems, (method.full_name, problems[0].message)
