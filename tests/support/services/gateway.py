"""A gateway in front of services of the same process, and plain HTTP requests to it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import urllib3
from support.backends import missing

from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_gateway.backends import Backends
from resolute_gateway.requirements import missing_for_http
from resolute_gateway.settings import HttpSettings
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.tls import ServerTls

if TYPE_CHECKING:
    from google.protobuf.message import Message

CLUSTER = "5b8f2b1e-0000-4000-8000-000000000000"


@dataclass(frozen=True)
class GatewayClient:
    """Sends requests to a gateway, each on a thread that the loop does not wait for."""

    port: int
    token: str
    pool: urllib3.HTTPConnectionPool

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Sends a request and returns the whole response."""
        return await asyncio.to_thread(
            self.pool.request, method, path, body=body, headers=dict(headers or {}), timeout=60, retries=False
        )

    async def post(self, path: str, body: bytes, *, kind: str = "application/json", **headers: str) -> Any:
        """Makes a call with the token."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.request(
            "POST",
            path,
            body=body,
            headers={"content-type": kind, "authorization": f"Bearer {self.token}", **named},
        )

    async def json(self, path: str, content: Any, **headers: str) -> Any:
        """Makes a call in JSON; returns the response."""
        return await self.post(path, json.dumps(content).encode(), **headers)

    async def binary(self, path: str, message: Message) -> Any:
        """Makes a call in binary; returns the response."""
        return await self.post(path, message.SerializeToString(), kind="application/proto")


def need_http() -> None:
    """Skips the test, or the module that is being imported, on a Python that the gateway cannot run on."""
    if sys.hexversion < 0x030B0000:
        pytest.skip("HTTP needs Python 3.11", allow_module_level=True)
    if reason := missing_for_http():
        missing(reason)


@asynccontextmanager
async def gateway(
    address: str,
    *,
    token: str = "",
    tls: ServerTls | None = None,
    backend_tls: ClientTls | None = None,
    page: Path | None = None,
    key: str = "",
    **settings: Any,
) -> AsyncIterator[GatewayClient]:
    """Serves HTTP in front of an address of gRPC until the block ends.

    Args:
        address: ``host:port`` of the services.
        token: Token of calls.
        tls: Its certificate; None for plain HTTP, which the client speaks.
        backend_tls: How the services are reached; None for a plain port.
        page: Where the page's files are; None for those that were built.
        key: By which it tells services who calls; empty where it does not.
        settings: Fields of ``HttpSettings``.
    """
    need_http()
    from resolute_gateway.http_gateway import HttpGateway
    from resolute_gateway.listening.listening_socket import ConnectionLimits, listen
    from resolute_gateway.requirements import BUILT

    backends = Backends({"*": address}, tls=backend_tls, peers=ForwardedPeers(key))
    grpc_port = int(address.rpartition(":")[2])
    options = HttpSettings(**{"cluster_id": CLUSTER, "grpc_port": grpc_port, **settings})
    limits = ConnectionLimits.of_this_process(proxies=options.proxies)
    opened = listen("127.0.0.1", 0, limits=limits, clock=SYSTEM_CLOCK)
    served = HttpGateway(backends, options, opened, tls=tls, page=page or BUILT)
    served.start()
    port = opened.getsockname()[1]
    pool = urllib3.HTTPConnectionPool("127.0.0.1", port, maxsize=32)
    try:
        yield GatewayClient(port, token, pool)
    finally:
        pool.close()
        await served.stop()
        await backends.close()
