"""What a refused call held is free at once, and does not wait for the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import operator
import weakref
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, cast

import grpc
import pytest
from connectrpc.errors import ConnectError

from resolute.api.searcher.v1.searcher_service_pb2 import DESCRIPTOR
from resolute.errors import InvalidArgumentError
from resolute_gateway import grpc_router
from resolute_gateway.rpc.encoded import Encoded
from resolute_gateway.rpc.json_conversion import MAX_MARKS
from resolute_gateway.rpc.procedure import Procedure
from resolute_serving.auth.call_access import CallAccess
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.observability.gauges import CallCounts
from resolute_serving.server.calls import Calls
from resolute_serving.server.client_versions import ClientVersions
from resolute_serving.workers.pool import WorkerPool
from resolute_serving.workers.process import WorkerLimits

SIMULATE = DESCRIPTOR.services_by_name["SearcherService"].methods_by_name["SimulateSearch"]


class Body(bytearray):
    """The bytes of a request, which tests can watch."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Context:
    """Keeps the error of an aborted call, as gRPC does."""

    def __init__(self) -> None:
        self.aborted: BaseException | None = None
        self.response_headers: dict[str, str] = {}
        self.request_headers = self
        self.timeout_ms = None

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    def time_remaining(self) -> None:
        return None

    def set_trailing_metadata(self, metadata: object) -> None: ...

    def get(self, name: str) -> str:
        return ""

    def allitems(self) -> tuple[()]:
        return ()

    async def send_initial_metadata(self, metadata: object) -> None: ...

    async def abort(self, code: object, details: object) -> NoReturn:
        await self.abort_with_status(None)

    async def abort_with_status(self, status: object) -> NoReturn:
        self.aborted = RuntimeError("aborted")
        raise self.aborted


class Access:
    """Lets everyone in."""

    def note_peer(self, metadata: Any, *, direct: str) -> None: ...

    def known(self, header: str) -> None:
        """Knows nobody."""

    def note_refusal(self, method: str, error: Exception) -> None: ...

    async def authenticate(self, method: str, header: str) -> None: ...

    @contextmanager
    def stream(self, token: object) -> Iterator[None]:
        yield


class RefusingChannel:
    """A service that refuses every call."""

    def unary_unary(self, path: str) -> Any:
        async def call(request: object, **_: object) -> NoReturn:
            raise InvalidArgumentError("refused")

        return call

    def unary_stream(self, path: str) -> Any:
        return lambda request, **_: RefusedStream(request)


class RefusedStream:
    """A stream that ends with an error; like gRPC's, it keeps its request."""

    def __init__(self, request: object) -> None:
        self._request = request

    def cancel(self) -> None: ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        nothing = grpc.aio.Metadata()
        if self._request is not None:
            raise grpc.aio.AioRpcError(grpc.StatusCode.INVALID_ARGUMENT, nothing, nothing, details="refused")
        yield b""


def refused(request: Any, context: Any) -> None:
    raise InvalidArgumentError(f"{len(request)} bytes are too many")


async def refused_stream(request: Any, context: Any) -> AsyncIterator[bytes]:
    refused(request, context)
    yield b""


async def refused_call(request: Any, context: Any) -> None:
    refused(request, context)


SINGLE: Any = grpc.unary_unary_rpc_method_handler(refused_call)
STREAM: Any = grpc.unary_stream_rpc_method_handler(refused_stream)


@pytest.mark.parametrize("handler", [SINGLE, STREAM])
def test_of_a_service(handler: Any) -> None:
    calls = Calls(cast("CallAccess", Access()), CallCounts(), ClientVersions(), lookups={})
    method = "/grpc.health.v1.Health/Check"
    handlers = grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": handler})
    calls.add_generic_rpc_handlers((handlers,))
    call = calls.find(method)
    assert call is not None
    serve = call.stream if handler is STREAM else call.single
    require_free(serve, Body(b"a long message"), Context())


def test_of_a_router() -> None:
    async def forward(body: Body, context: Context) -> None:
        channel = cast("grpc.aio.Channel", RefusingChannel())
        request = cast("bytes", body)
        responses = grpc_router._forward(channel, "/x/Y", ForwardedPeers(), request, context)
        del body, request
        async for _ in responses:
            pass

    require_free(forward, Body(b"a long message"), Context())


@pytest.mark.parametrize("json", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_of_http(json: bool, stream: bool) -> None:
    procedure = Procedure(
        SIMULATE,
        cast("grpc.aio.Channel", RefusingChannel()),
        conversion=cast("Any", None),
        sign_in=cast("Any", None),
        streams=cast("Any", OpenNothing()),
        peers=ForwardedPeers(),
    )

    async def call(body: Body, context: Any) -> None:
        # As the protocol library does, which keeps its request with the error.
        request, error = Encoded(cast("bytes", body), json=json), None
        del body
        try:
            if stream:
                async for _ in procedure.server_stream(request, context):
                    pass
            else:
                await procedure.unary(request, context)
        except ConnectError as failure:
            error = failure
        context.aborted = error
        raise RuntimeError("aborted")

    require_free(call, Body(b"," * (MAX_MARKS + 1)), Context())


class OpenNothing:
    @contextmanager
    def opened(self, call: Any) -> Iterator[None]:
        yield


def test_of_a_worker_process() -> None:
    async def scenario() -> None:
        pool = WorkerPool("test", processes=1, limits=WorkerLimits(cpu_seconds=None, memory_bytes=None))
        try:
            argument: OrderedDict[int, int] = OrderedDict()
            watched = weakref.ref(argument)
            with suppress(KeyError):
                await pool.run(operator.getitem, argument, 1)
            del argument
            await pool.run(len, ())  # the thread of the one before has let go of it
            assert watched() is None
        finally:
            await pool.close()

    asyncio.run(scenario())


def require_free(serve: Callable[[Any, Any], Any], body: Body, context: Context) -> None:
    """Serves a call that is refused; its body must be gone though the error is still there."""
    bodies, watched = [body], weakref.ref(body)
    del body

    async def scenario() -> None:
        with pytest.raises(RuntimeError, match="aborted"):
            await serve(bodies.pop(), context)

    asyncio.run(scenario())
    assert context.aborted is not None
    assert watched() is None
