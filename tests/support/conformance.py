"""Calls that end alike, however they are made: clients, proxies and the gateway are held to it."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc
from faults.fuzz.bases import Bases
from faults.fuzz.world import Caller, World
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2
from grpc_status import rpc_status
from support.contract_methods import methods, path
from support.services.gateway import GatewayClient

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


class Way(Protocol):
    """A way to make a call with one answer."""

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""


@dataclass(frozen=True)
class ByGrpc:
    """Calls by gRPC."""

    channel: grpc.aio.Channel

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        call: Any = self.channel.unary_unary(path(method))
        metadata = [("authorization", f"Bearer {token}")]
        try:
            return answered(method, await call(request.SerializeToString(), metadata=metadata, timeout=60))
        except grpc.aio.AioRpcError as failure:
            status = rpc_status.from_call(failure) or status_pb2.Status(message=failure.details())
            details = [(one.type_url.rpartition("/")[2], one.value) for one in status.details]
            return failed(
                failure.code().name.lower().replace("cancelled", "canceled"), status.message, details
            )


@dataclass(frozen=True)
class ByHttp:
    """Calls by the Connect protocol."""

    http: GatewayClient
    in_json: bool

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        encoded = json_format.MessageToJson(request).encode() if self.in_json else request.SerializeToString()
        kind = "application/json" if self.in_json else "application/proto"
        headers = {"content-type": kind, "authorization": f"Bearer {token}"}
        response = await self.http.request("POST", path(method), body=encoded, headers=headers)
        if response.status != 200:
            content = response.json()
            details = [
                (one["type"], base64.b64decode(one["value"] + "==")) for one in content.get("details", ())
            ]
            return failed(content["code"], content["message"], details)
        if self.in_json:
            message = json_format.Parse(response.data, GetMessageClass(method.output_type)())
            return answered(method, message.SerializeToString())
        return answered(method, response.data)


def token_for(caller: Caller, world: World, method: MethodDescriptor) -> str:
    """A token of a caller that the table lets through."""
    rule = PERMISSIONS[path(method)]
    if rule.user:
        return caller.admin
    return caller.trial(world.run) if rule.trial is not None else caller.service


@dataclass
class Comparison:
    """What came of calls that were made in several ways."""

    ended: dict[str, str] = field(default_factory=dict)
    """How each call ended without a detour, by its name."""
    wrong: list[str] = field(default_factory=list)
    """What ended otherwise elsewhere."""

    def check(self, calls: Sequence[MethodDescriptor], ways: Iterable[str]) -> None:
        """Fails unless all calls were made and ended alike."""
        answered_calls = list(self.ended.values()).count("ok")
        print(f"{len(calls)} calls, each by {', '.join(ways)}; {answered_calls} with an answer")
        assert not self.wrong, "\n".join(self.wrong)
        assert set(self.ended) == {one.full_name for one in calls}


def unary_calls() -> list[MethodDescriptor]:
    """All calls with one request and one answer."""
    return [one for one in methods() if not one.client_streaming and not one.server_streaming]


async def compare(
    caller: Caller, world: World, calls: Sequence[MethodDescriptor], ways: Mapping[str, Way]
) -> Comparison:
    """Makes each call directly, in each of the ways, and directly again.

    Args:
        caller: Has tokens, and a channel to the services.
        world: What requests name.
        calls: The calls.
        ways: Other ways to make them, by name.
    """
    comparison = Comparison()
    directly = ByGrpc(caller.channel)
    for method in calls:
        request = Bases(world, random.Random(method.full_name)).request(method)
        token = token_for(caller, world, method)
        if method.GetOptions().idempotency_level != MethodOptions.NO_SIDE_EFFECTS:
            # After it, repeating the call changes nothing any more, or fails each time.
            await directly(method, request, token)
        before = await directly(method, request, token)
        outcomes = {name: await way(method, request, token) for name, way in ways.items()}
        after = await directly(method, request, token)
        comparison.ended[method.full_name] = before.code
        for name, outcome in outcomes.items():
            if not outcome.agrees(before, after):
                comparison.wrong.append(
                    f"{method.full_name} by {name}: {outcome}\n  not {before}\n  nor {after}"
                )
    return comparison
