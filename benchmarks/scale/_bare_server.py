"""A bare asyncio server of gRPC: what an empty unary call costs at least. Prints its port."""

from __future__ import annotations

import asyncio
import sys

import grpc

from resolute.contracts.calls.keepalive import TOLERANCE_OPTIONS

METHOD = "/bare.Bare/Call"


async def _empty(_: bytes, __: object) -> bytes:
    return b""


class _Handlers(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        """Handles every call."""
        return grpc.unary_unary_rpc_method_handler(_empty)


async def main() -> None:
    """Serves until it is killed."""
    server = grpc.aio.server(options=TOLERANCE_OPTIONS)
    server.add_generic_rpc_handlers((_Handlers(),))
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    sys.stdout.flush()
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
