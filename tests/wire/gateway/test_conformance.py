"""Every call with one answer gives the same answer, or the same error, through the gateway as without it."""

from __future__ import annotations

import asyncio
import base64
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from faults.fuzz.bases import Bases
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller, World, make_world
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2
from grpc_status import rpc_status
from support.contract_methods import methods, path
from support.services.gateway import GatewayClient, gateway
from support.services.in_process import serving

from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.policy.permissions import PERMISSIONS

Leaves = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """How a call ended: the leaves of its answer or of its error, by path."""

    code: str
    leaves: Leaves

    def agrees(self, *others: Outcome) -> bool:
        """Whether it is as either of two others that were made before and after it.

        What differs between those, such as times, says nothing.
        """
        before, after = others
        moving = {
            name
            for name in before.leaves.keys() | after.leaves.keys()
            if before.leaves.get(name) != after.leaves.get(name)
        }
        return any(
            self.code == other.code and not (_differing(self.leaves, other.leaves) - moving)
            for other in others
        )


def _differing(one: Leaves, other: Leaves) -> set[str]:
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


def leaves_of(content: Any, name: str = "") -> dict[str, Any]:
    """The values of nested objects and lists, by path."""
    if isinstance(content, dict):
        return {k: v for key, value in content.items() for k, v in leaves_of(value, f"{name}.{key}").items()}
    if isinstance(content, list):
        return {k: v for i, value in enumerate(content) for k, v in leaves_of(value, f"{name}[{i}]").items()}
    return {name: content}


def answered(method: MethodDescriptor, data: bytes) -> Outcome:
    message = GetMessageClass(method.output_type).FromString(data)
    return Outcome("ok", leaves_of(json_format.MessageToDict(message)))


def failed(code: str, message: str, details: list[tuple[str, bytes]]) -> Outcome:
    # Numbers in messages are times to wait and the like.
    return Outcome(
        code,
        {
            "message": re.sub(r"\d+", "0", message),
            "details": [kind for kind, _ in details],
            **{f"detail {number}": value for number, (_, value) in enumerate(details)},
        },
    )


async def directly(caller: Caller, method: MethodDescriptor, data: bytes, token: str) -> Outcome:
    call: Any = caller.channel.unary_unary(path(method))
    try:
        return answered(method, await call(data, metadata=[("authorization", f"Bearer {token}")], timeout=60))
    except grpc.aio.AioRpcError as failure:
        status = rpc_status.from_call(failure) or status_pb2.Status(message=failure.details())
        details = [(one.type_url.rpartition("/")[2], one.value) for one in status.details]
        return failed(failure.code().name.lower().replace("cancelled", "canceled"), status.message, details)


async def through(
    http: GatewayClient, method: MethodDescriptor, request: Any, *, token: str, in_json: bool
) -> Outcome:
    body = json_format.MessageToJson(request).encode() if in_json else request.SerializeToString()
    kind = "application/json" if in_json else "application/proto"
    headers = {"content-type": kind, "authorization": f"Bearer {token}"}
    response = await http.request("POST", path(method), body=body, headers=headers)
    if response.status != 200:
        content = response.json()
        details = [(one["type"], base64.b64decode(one["value"] + "==")) for one in content.get("details", ())]
        return failed(content["code"], content["message"], details)
    if in_json:
        message = json_format.Parse(response.data, GetMessageClass(method.output_type)())
        return answered(method, message.SerializeToString())
    return answered(method, response.data)


def token_for(caller: Caller, world: World, method: MethodDescriptor) -> str:
    """A token of a caller that the table lets through."""
    rule = PERMISSIONS[path(method)]
    if rule.user:
        return caller.admin
    return caller.trial(world.run) if rule.trial is not None else caller.service


@pytest.mark.timeout(300)
def test_every_call_ends_through_the_gateway_as_it_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    unary = [one for one in methods() if not one.client_streaming and not one.server_streaming]
    wrong: list[str] = []
    ended: dict[str, str] = {}

    async def compare(caller: Caller, http: GatewayClient, world: World, method: MethodDescriptor) -> None:
        request = Bases(world, random.Random(method.full_name)).request(method)
        data, token = request.SerializeToString(), token_for(caller, world, method)
        if method.GetOptions().idempotency_level != MethodOptions.NO_SIDE_EFFECTS:
            # After it, repeating the call changes nothing any more, or fails each time.
            await directly(caller, method, data, token)
        before = await directly(caller, method, data, token)
        in_json = await through(http, method, request, token=token, in_json=True)
        in_binary = await through(http, method, request, token=token, in_json=False)
        after = await directly(caller, method, data, token)
        ended[method.full_name] = before.code
        for name, outcome in (("JSON", in_json), ("binary", in_binary)):
            if not outcome.agrees(before, after):
                wrong.append(f"{method.full_name} in {name}: {outcome}\n  not {before}\n  nor {after}")

    async def scenario() -> None:
        async with serving(BLUEPRINTS, tmp_path) as running, gateway(running.address) as http:
            caller = Caller(running)
            try:
                world = await make_world(caller, tmp_path, random.Random(1))
                for method in unary:
                    await compare(caller, http, world, method)
            finally:
                await caller.channel.close()
                end_processes(tmp_path)

    asyncio.run(scenario())
    print(f"{len(unary)} calls, each in JSON and binary, {list(ended.values()).count('ok')} with an answer")
    assert not wrong, "\n".join(wrong)
    assert set(ended) == {one.full_name for one in unary}
