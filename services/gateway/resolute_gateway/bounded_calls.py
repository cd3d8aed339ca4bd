"""Bounds the gRPC calls of callers whose tokens only the services check."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Any

import grpc
from grpc_status import rpc_status

from resolute.errors import ResoluteError
from resolute_serving.auth.refusals import client_address
from resolute_serving.bounds.callers import Caller, CallersCalls
from resolute_serving.server.calls import request_of, to_status


class BoundedCalls(grpc.GenericRpcHandler):
    """Limits the calls of each caller at a time, and the time until their requests come.

    A call counts for the address of its client until its request is there, and for its token after that:
    thousands of runs may share an address, and a service refuses a token that was made up at once.

    Args:
        handlers: Answer the calls; each call with one request has a stream of answers.
    """

    def __init__(self, handlers: Iterable[grpc.GenericRpcHandler]) -> None:
        self._handlers = list(handlers)
        self._callers = CallersCalls()

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call; None if there is none."""
        found = (handlers.service(handler_call_details) for handlers in self._handlers)
        handler: Any = next((one for one in found if one is not None), None)
        if handler is None:
            return None
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(partial(self._single, handler.stream_unary))
        return grpc.stream_stream_rpc_method_handler(
            partial(self._many, handler.unary_stream), None, handler.response_serializer
        )

    async def _single(self, answer: Any, requests: AsyncIterator[bytes], context: Any) -> Any:
        try:
            with self._callers.counted(_caller(context)):
                return await answer(requests, context)
        except ResoluteError as error:
            refusal = rpc_status.to_status(to_status(error))
        return await context.abort_with_status(refusal)

    async def _many(self, answer: Any, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        try:
            with self._callers.counted(Caller("address", client_address(context.peer()))):
                # gRPC keeps this frame until the collector comes by: it does not name the request.
                responses = answer(await request_of(requests), context)
            with self._callers.counted(_caller(context)):
                async with aclosing(responses):
                    async for response in responses:
                        yield response
                return
        except ResoluteError as error:
            refusal = rpc_status.to_status(to_status(error))
        await context.abort_with_status(refusal)


def _caller(context: Any) -> Caller:
    header = next((value for key, value in context.invocation_metadata() if key == "authorization"), "")
    if not header:
        return Caller("address", client_address(context.peer()))
    return Caller("holder of the token", hashlib.sha256(header.encode()).hexdigest()[:16])
