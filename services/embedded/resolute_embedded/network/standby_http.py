"""The HTTP port of a standby process, whose health check makes load balancers send no client to it."""

from __future__ import annotations

import os

from starlette.types import Receive, Scope, Send

from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.http import host_of, listen_http
from resolute_embedded.network.remote_access import RemoteAccess
from resolute_gateway.listening.http_server import HttpServer
from resolute_gateway.settings import HttpSettings
from resolute_gateway.web.answers import refusal


def standby_http(state: StateDirectory, *, remote: RemoteAccess | None, port: int | None) -> HttpServer:
    """Opens the port that HTTP will be served on, where every request is refused until then.

    Args:
        state: The home.
        remote: How other machines reach the cluster; None if only this one does.
        port: The port that somebody wants; None for the last one, or else a free one.

    Raises:
        UnavailableError: The wanted port is taken.
        InvalidArgumentError: A setting is wrong.
    """
    settings = HttpSettings.from_environment(os.environ, cluster_id=state.cluster_id.get(), grpc_port=0)
    opened = listen_http(state, settings, host=host_of(remote), asked=port)
    return HttpServer(_refuse, opened, tls=None if remote is None else remote.listener.tls)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    response = refusal(
        503, code="unavailable", message="this process stands by: another one serves the cluster"
    )
    await response(scope, receive, send)
