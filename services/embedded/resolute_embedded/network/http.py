"""The HTTP gateway of the cluster of this machine. A cluster without one does all else."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from resolute.errors import UnavailableError
from resolute_embedded.network.remote_access import RemoteAccess
from resolute_embedded.state_directory import StateDirectory
from resolute_gateway.backends import Backends
from resolute_gateway.requirements import missing_for_http
from resolute_gateway.settings import HttpSettings
from resolute_serving.tls import ServerTls

if TYPE_CHECKING:
    from resolute_gateway.http_gateway import HttpGateway

_HOST = "127.0.0.1"


class ClusterHttp:
    """Serves HTTP, or says why not.

    Args:
        settings: How it is served.
        address: ``host:port`` of the services.
        opened: The port; None where HTTP is not served.
        missing: What it lacks here; empty if nothing, or if it was not asked for.
        tls: Its certificate; None for plain HTTP.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        address: str,
        opened: socket.socket | None,
        missing: str,
        tls: ServerTls | None = None,
    ) -> None:
        self._settings = settings
        self._backends = Backends({"*": address})
        self._opened = opened
        self._missing = missing
        self._tls = tls
        self._gateway: HttpGateway | None = None

    @classmethod
    def open(
        cls,
        state: StateDirectory,
        *,
        cluster_id: str,
        address: str,
        port: int | None,
        off: bool,
        remote: RemoteAccess | None = None,
    ) -> ClusterHttp:
        """Opens the port.

        Args:
            state: The home, which knows the last port.
            cluster_id: UUID of the cluster.
            address: ``host:port`` of the services.
            port: The port that somebody wants; None for the last one, or else a free one.
            off: Whether HTTP is not wanted.
            remote: How other machines reach the cluster; None if only this one does.

        Raises:
            UnavailableError: The wanted port is taken.
            InvalidArgumentError: A setting is wrong.
        """
        missing = "" if off else missing_for_http()
        host = _HOST if remote is None else remote.listener.host
        opened = None if off or missing else _listen(state, host, port)
        grpc_port = int(address.rpartition(":")[2]) if remote is None else remote.listener.port
        settings = HttpSettings.from_environment(os.environ, cluster_id=cluster_id, grpc_port=grpc_port)
        if remote is None:
            return cls(settings, address=address, opened=opened, missing=missing)
        settings = replace(settings, hosts=settings.hosts | remote.names)
        return cls(settings, address=address, opened=opened, missing=missing, tls=remote.listener.tls)

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
    def announcement(self) -> list[str]:
        """What `resolute up` says of it; nothing where it is not wanted."""
        said = f"not served, {self._missing}" if self._missing else self.url
        return [f"HTTP: {said}"] if said else []

    async def start(self) -> None:
        """Begins to answer."""
        if self._opened is not None:
            # It imports what HTTP needs, which need not be installed.
            from resolute_gateway.http_gateway import HttpGateway

            self._gateway = HttpGateway(self._backends, self._settings, self._opened, tls=self._tls)
            self._gateway.start()

    async def stop(self) -> None:
        """Ends streams, lets other requests in progress end."""
        if self._gateway is not None:
            await self._gateway.stop()
        await self._backends.close()


def _listen(state: StateDirectory, host: str, asked: int | None) -> socket.socket:
    from resolute_gateway.web.http_server import listen

    if asked is not None:
        return listen(host, asked)
    try:
        return listen(host, state.last_http_port())
    except UnavailableError:
        return listen(host, 0)
