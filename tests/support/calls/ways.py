"""Ways to make a call: by gRPC, by HTTP, by the Python client."""

from __future__ import annotations

import asyncio
import importlib
import json
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from support.calls.contract_methods import path
from support.calls.outcomes import Outcome, answered, ended, failed_by_grpc, failed_by_http
from support.services.gateway import GatewayClient

from resolute.contracts.calls.tls import ClientTls
from resolute.errors import ResoluteError
from resolute.rpc.channel import open_channel

_SECONDS = 60
_LAST = 2
"""The flag of the envelope that ends a stream of the Connect protocol."""


class Way(Protocol):
    """A way to make a call. It takes the first of a stream of answers; a stream of requests has one."""

    @property
    def streams_requests(self) -> bool:
        """Whether calls whose request is a stream can be made."""

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call; without a token if it is empty."""


@dataclass(frozen=True)
class ByGrpc:
    """Calls by gRPC."""

    channel: grpc.aio.Channel
    streams_requests: bool = True

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        encoded: Any = request.SerializeToString()
        options: Any = {"metadata": _authorization(token), "timeout": _SECONDS}
        try:
            if not method.server_streaming:
                kind: Any = self.channel.stream_unary if method.client_streaming else self.channel.unary_unary
                sent = iter([encoded]) if method.client_streaming else encoded
                return answered(method, await kind(path(method))(sent, **options))
            stream: Any = self.channel.unary_stream(path(method))
            call = stream(encoded, **options)
            try:
                first = await call.read()
            finally:
                call.cancel()
            return ended() if first is grpc.aio.EOF else answered(method, first)
        except grpc.aio.AioRpcError as failure:
            return failed_by_grpc(failure)


@dataclass(frozen=True)
class ByPython:
    """Calls by the generated stubs on a channel of the Python client."""

    address: str
    tls: ClientTls | None = None
    streams_requests: bool = True

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        return await asyncio.to_thread(self._make, method, request, token)

    def _make(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        module = method.containing_service.file.name.removesuffix(".proto").replace("/", ".")
        stubs = importlib.import_module(f"{module}_pb2_grpc")
        with open_channel(self.address, token=lambda: token, tls=self.tls) as channel:
            call = getattr(getattr(stubs, f"{method.containing_service.name}Stub")(channel), method.name)
            try:
                if not method.server_streaming:
                    response = call(iter([request]) if method.client_streaming else request, timeout=_SECONDS)
                    return answered(method, response.SerializeToString())
                stream = call(request, timeout=_SECONDS)
                try:
                    first = next(stream, None)
                finally:
                    stream.cancel()
                return ended() if first is None else answered(method, first.SerializeToString())
            except ResoluteError as error:
                failure = error
        outcome = failed_by_grpc(failure.__context__)
        assert type(failure).reason in _reasons(outcome), f"{method.full_name}: {failure!r} of {outcome}"
        return outcome


@dataclass(frozen=True)
class ByHttp:
    """Calls by the Connect protocol."""

    http: GatewayClient
    in_json: bool
    streams_requests: bool = False

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        encoded = json_format.MessageToJson(request).encode() if self.in_json else request.SerializeToString()
        codec = "json" if self.in_json else "proto"
        if method.server_streaming:
            body = struct.pack(">BI", 0, len(encoded)) + encoded
            headers = {"content-type": f"application/connect+{codec}", **dict(_authorization(token))}
            return await asyncio.to_thread(self._first, method, body, headers)
        headers = {"content-type": f"application/{codec}", **dict(_authorization(token))}
        response = await self.http.request("POST", path(method), body=encoded, headers=headers)
        if response.status != 200:
            return failed_by_http(response.json())
        return self._answered(method, response.data)

    def _answered(self, method: MethodDescriptor, data: bytes) -> Outcome:
        if self.in_json:
            data = json_format.Parse(data, GetMessageClass(method.output_type)()).SerializeToString()
        return answered(method, data)

    def _first(self, method: MethodDescriptor, body: bytes, headers: dict[str, str]) -> Outcome:
        response = self.http.pool.request(
            "POST", path(method), body=body, headers=headers, timeout=_SECONDS, preload_content=False
        )
        try:
            if response.status != 200:
                return failed_by_http(json.loads(response.read()))
            flags, length = struct.unpack(">BI", response.read(5))
            content = response.read(length)
        finally:
            response.close()
        if not flags & _LAST:
            return self._answered(method, content)
        error = json.loads(content).get("error")
        return ended() if error is None else failed_by_http(error)


def _authorization(token: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {token}")] if token else []


def _reasons(outcome: Outcome) -> list[str]:
    """The reasons that the details of an error name."""
    return [
        ErrorInfo.FromString(outcome.leaves[f"detail {number}"]).reason
        for number, kind in enumerate(outcome.leaves["details"])
        if kind == ErrorInfo.DESCRIPTOR.full_name
    ]
