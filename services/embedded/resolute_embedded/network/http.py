"""The optional HTTP gateway of an embedded cluster."""

from __future__ import annotations

import asyncio
import importlib
import ipaddress
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.tasks import end_tasks
from resolute.errors import UnavailableError
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.remote_access import RemoteAccess
from resolute_gateway.backends import Backends
from resolute_gateway.requirements import NO_PAGE, has_page, missing_for_http
from resolute_gateway.settings import HttpSettings
from resolute_serving.auth.forwarded_peers import ForwardedPeers
from resolute_serving.tls import ServerTls

if TYPE_CHECKING:
    from resolute_gateway.http_gateway import HttpGateway

_HOST = "127.0.0.1"
_log = structlog.get_logger("cluster")


class ClusterHttp:
    """Serves HTTP, or gives the reason why it does not.

    Args:
        settings: Settings of HTTP.
        address: ``host:port`` of the services.
        opened: The open port; None if HTTP is not served.
        peers: Names the caller to the services.
        missing: The requirement that is missing here; empty if none is, or if HTTP was not requested.
        serves: Whether this process still serves the cluster.
        tls: Its certificate; None for plain HTTP.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        address: str,
        opened: socket.socket | None,
        peers: ForwardedPeers,
        missing: str,
        serves: Callable[[], bool] = lambda: True,
        tls: ServerTls | None = None,
    ) -> None:
        self._settings = settings
        self._backends = Backends({"*": address}, peers=peers)
        self._opened = opened
        self._missing = missing
        self._serves = serves
        self._tls = tls
        self._gateway: HttpGateway | None = None
        self._loading: asyncio.Task[None] | None = None

    @classmethod
    def open(
        cls,
        state: StateDirectory,
        *,
        cluster_id: str,
        address: str,
        port: int | None,
        off: bool,
        peers: ForwardedPeers,
        serves: Callable[[], bool] = lambda: True,
        remote: RemoteAccess | None = None,
    ) -> ClusterHttp:
        """Opens the port.

        Args:
            state: The home, which knows the last port.
            cluster_id: UUID of the cluster.
            address: ``host:port`` of the services.
            port: The port that somebody wants; None for the last one, or else a free one.
            off: Whether HTTP is not wanted.
            peers: Names the caller to the services.
            serves: Whether this process still serves the cluster.
            remote: How other machines reach the cluster; None if only this one does.

        Raises:
            UnavailableError: The wanted port is taken.
            InvalidArgumentError: A setting is wrong.
        """
        missing = "" if off else missing_for_http()
        grpc_port = int(address.rpartition(":")[2]) if remote is None else remote.listener.port
        settings = HttpSettings.from_environment(os.environ, cluster_id=cluster_id, grpc_port=grpc_port)
        opened = None if off or missing else listen_http(state, settings, host=host_of(remote), asked=port)
        if remote is not None:
            settings = replace(settings, hosts=settings.hosts | remote.names)
        return cls(
            settings,
            address=address,
            opened=opened,
            peers=peers,
            missing=missing,
            serves=serves,
            tls=None if remote is None else remote.listener.tls,
        )

    @property
    def url(self) -> str:
        """Where it is served; empty if it is not."""
        if self._opened is None:
            return ""
        host, port = self._opened.getsockname()[:2]
        shown = _HOST if ipaddress.ip_address(host).is_unspecified else host
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"

    @property
    def has_page(self) -> bool:
        """Whether this installation has a page for browsers."""
        return has_page()

    @property
    def announcement(self) -> list[str]:
        """What `resolute up` says of it; nothing where it is not wanted."""
        state = f"not served, {self._missing}" if self._missing else self.url
        if self.url and not self.has_page:
            state = f"{self.url}, for programs; there is no page: {NO_PAGE}"
        return [f"HTTP: {state}"] if state else []

    def start(self) -> None:
        """Begins to answer. The first connection loads what HTTP needs."""
        if self._opened is not None:
            self._loading = asyncio.create_task(self._serve(self._opened), name="http-loading")

    async def stop(self) -> None:
        """Ends streams, lets other requests in progress end."""
        await end_tasks(self._loading)
        if self._gateway is not None:
            await self._gateway.stop()
        elif self._opened is not None:
            self._opened.close()
        await self._backends.close()

    async def _serve(self, opened: socket.socket) -> None:
        await _connection_at(opened)
        try:
            # Calls go on meanwhile.
            await asyncio.to_thread(importlib.import_module, "resolute_gateway.http_gateway")
            from resolute_gateway.http_gateway import HttpGateway

            gateway = HttpGateway(self._backends, self._settings, opened, tls=self._tls, serves=self._serves)
            gateway.start()
        except Exception as error:
            # Clients are refused at once: a port that listens would let them wait.
            opened.close()
            self._opened, self._missing = None, f"it cannot be loaded: {error}"
            _log.exception("HTTP cannot be served; calls of gRPC are answered")
            raise
        self._gateway = gateway


async def _connection_at(opened: socket.socket) -> None:
    """Waits until a client connects; the connection stays for the caller of ``accept``."""
    loop = asyncio.get_running_loop()
    connected = asyncio.Event()
    loop.add_reader(opened, connected.set)
    try:
        await connected.wait()
    finally:
        loop.remove_reader(opened)


def host_of(remote: RemoteAccess | None) -> str:
    """The address that HTTP binds."""
    return _HOST if remote is None else remote.listener.host


def listen_http(
    state: StateDirectory, settings: HttpSettings, *, host: str, asked: int | None
) -> socket.socket:
    """Opens the port of HTTP: the wanted one, or the last one, or else a free one.

    Raises:
        UnavailableError: The wanted port is taken.
    """
    from resolute_gateway.listening.listening_socket import ConnectionLimits, listen

    limits = ConnectionLimits.of_this_process(proxies=settings.proxies)
    open_port = partial(listen, host, limits=limits, clock=SYSTEM_CLOCK)
    if asked is not None:
        return open_port(asked)
    try:
        return open_port(state.ports.http.last())
    except UnavailableError:
        return open_port(0)
