"""The HTTP gateway of the cluster of this machine. A cluster without one does all else."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from resolute.errors import UnavailableError
from resolute_embedded.state_directory import StateDirectory
from resolute_gateway.backends import Backends
from resolute_gateway.requirements import missing_for_http
from resolute_gateway.settings import HttpSettings

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
    """

    def __init__(
        self, settings: HttpSettings, *, address: str, opened: socket.socket | None, missing: str
    ) -> None:
        self._settings = settings
        self._backends = Backends({"*": address})
        self._opened = opened
        self._missing = missing
        self._gateway: HttpGateway | None = None

    @classmethod
    def open(
        cls, state: StateDirectory, *, cluster_id: str, address: str, port: int | None, off: bool
    ) -> ClusterHttp:
        """Opens the port.

        Args:
            state: The home, which knows the last port.
            cluster_id: UUID of the cluster.
            address: ``host:port`` of the services.
            port: The port that somebody wants; None for the last one, or else a free one.
            off: Whether HTTP is not wanted.

        Raises:
            UnavailableError: The wanted port is taken.
            InvalidArgumentError: A setting is wrong.
        """
        missing = "" if off else missing_for_http()
        opened = None if off or missing else _listen(state, port)
        settings = HttpSettings.from_environment(
            os.environ, cluster_id=cluster_id, grpc_port=int(address.rpartition(":")[2])
        )
        return cls(settings, address=address, opened=opened, missing=missing)

    @property
    def url(self) -> str:
        """Where it is served; empty if it is not."""
        return "" if self._opened is None else f"http://{_HOST}:{self._opened.getsockname()[1]}"

    @property
    def announcement(self) -> str:
        """What `resolute up` says of it; empty where it is not wanted."""
        return f"not served, {self._missing}" if self._missing else self.url

    async def start(self) -> None:
        """Begins to answer."""
        if self._opened is not None:
            # It imports what HTTP needs, which need not be installed.
            from resolute_gateway.http_gateway import HttpGateway

            self._gateway = HttpGateway(self._backends, self._settings, self._opened)
            self._gateway.start()

    async def stop(self) -> None:
        """Ends streams, lets other requests in progress end."""
        if self._gateway is not None:
            await self._gateway.stop()
        await self._backends.close()


def _listen(state: StateDirectory, asked: int | None) -> socket.socket:
    from resolute_gateway.web.http_server import listen

    if asked is not None:
        return listen(_HOST, asked)
    try:
        return listen(_HOST, state.last_http_port())
    except UnavailableError:
        return listen(_HOST, 0)
