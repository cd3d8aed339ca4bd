"""Channels from one service to the others, which never import each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import grpc
from grpc_status import rpc_status

from resolute import errors
from resolute.contracts.calls.error_status import from_status
from resolute.contracts.calls.keepalive import KEEPALIVE_OPTIONS
from resolute.contracts.calls.retries import Retries
from resolute.contracts.calls.tls import ClientTls, aio_channel
from resolute_serving.context import current_trace, new_trace
from resolute_serving.server.calls import TRACE_HEADER, Calls
from resolute_serving.server.channels.local_channel import LocalChannel

DEFAULT_DEADLINE = 10.0
"""Seconds that a call between services may take when its caller names no other limit."""

_OPTIONS: tuple[tuple[str, str | int], ...] = (
    *KEEPALIVE_OPTIONS,
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
)


class Peers:
    """The other services of the cluster, by name, with one channel each, opened at its first use.

    Args:
        addresses: ``host:port`` by service name; the entry ``*`` is for every other service.
        token: Returns this service's own token.
        tls: TLS settings; None for plain ports.
    """

    def __init__(
        self, addresses: Mapping[str, str], *, token: Callable[[], str], tls: ClientTls | None = None
    ) -> None:
        self._addresses = addresses
        self._tls = tls
        self._token = token
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._callers_channels: dict[str, grpc.aio.Channel] = {}
        self._calls: Calls | None = None

    def serve_here(self, calls: Calls) -> None:
        """Lets calls to the services of this process stay in it; to be called before they make any.

        Args:
            calls: What this process answers: all services without an address of their own.
        """
        self._calls = calls

    def channel(self, service: str) -> grpc.aio.Channel:
        """The channel to a service.

        Raises:
            FailedPreconditionError: Its address was not configured.
        """
        address = self._addresses.get(service) or self._addresses.get("*")
        if not address:
            raise errors.FailedPreconditionError(
                f"the address of the {service} service is not set; set RESOLUTE_{service.upper()}_ADDRESS"
            )
        if address not in self._channels:
            interceptors = [_Unary(self._token), _Stream(self._token)]
            self._channels[address] = aio_channel(
                address, tls=self._tls, options=_OPTIONS, interceptors=interceptors
            )
        wire = self._channels[address]
        if self._calls is None or service in self._addresses:
            return wire
        local = LocalChannel(self._calls, wire, token=self._token, deadline=DEFAULT_DEADLINE)
        return cast("grpc.aio.Channel", local)  # as far as stubs use one

    def channel_for_callers(self, method: str) -> grpc.aio.Channel | None:
        """The channel to the service of a call, for calls that are passed on with the token of their caller.

        Args:
            method: ``/package.Service/Method``.
        """
        service = method.removeprefix("/resolute.api.").partition(".")[0]
        address = self._addresses.get(service) or self._addresses.get("*")
        if not address:
            return None
        if address not in self._callers_channels:
            self._callers_channels[address] = aio_channel(address, tls=self._tls, options=_OPTIONS)
        return self._callers_channels[address]

    async def close(self) -> None:
        """Closes every channel."""
        for channels in (self._channels, self._callers_channels):
            for channel in channels.values():
                await channel.close()
            channels.clear()


def _complete(details: Any, token: str, timeout: float | None) -> grpc.aio.ClientCallDetails:
    metadata = grpc.aio.Metadata(*(details.metadata or ()))
    metadata.add(TRACE_HEADER, current_trace.get() or new_trace())
    metadata.add("authorization", f"Bearer {token}")
    return grpc.aio.ClientCallDetails(
        details.method, timeout, metadata, details.credentials, details.wait_for_ready
    )


class _Unary(grpc.aio.UnaryUnaryClientInterceptor):
    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    async def intercept_unary_unary(
        self, continuation: Callable[..., Awaitable[Any]], client_call_details: Any, request: Any
    ) -> Any:
        timeout = client_call_details.timeout
        retries = Retries(DEFAULT_DEADLINE if timeout is None else timeout)
        while True:
            details = _complete(client_call_details, self._token(), retries.seconds_left)
            try:
                return await (await continuation(details, request))
            except grpc.aio.AioRpcError as failure:
                pause = retries.pause_after(failure.code().name)
                if pause is None:
                    raise to_error(failure) from failure
            await asyncio.sleep(pause)


class _Stream(grpc.aio.UnaryStreamClientInterceptor):
    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    async def intercept_unary_stream(
        self, continuation: Callable[..., Awaitable[Any]], client_call_details: Any, request: Any
    ) -> AsyncIterator[Any]:
        details = _complete(client_call_details, self._token(), client_call_details.timeout)
        return _stream_with_errors(await continuation(details, request))


async def _stream_with_errors(call: Any) -> AsyncIterator[Any]:
    try:
        async for response in call:
            yield response
    except grpc.aio.AioRpcError as failure:
        raise to_error(failure) from failure
    finally:
        call.cancel()


def to_error(failure: grpc.aio.AioRpcError) -> errors.ResoluteError:
    """Turns a failed call into the error that the other service raised."""
    status = rpc_status.from_call(failure)
    if status is None:
        kind = errors.BY_STATUS.get(failure.code().name, errors.InternalError)
        return kind(failure.details() or failure.code().name)
    return from_status(status, status_name=failure.code().name)
