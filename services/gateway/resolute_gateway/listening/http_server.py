"""Runs uvicorn inside a process with its own event loop and signal handlers."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from resolute_gateway.listening.connection import BoundedConnection
from resolute_gateway.listening.listening_socket import BACKLOG
from resolute_serving.tls import ServerTls

_GRACE_SECONDS = 5
_IDLE_SECONDS = 75
"""How long a connection may be idle: longer than most clients keep one, so that none meets a closed one."""
HANDSHAKE_SECONDS = 10.0
"""How long the TLS handshake of a client may take."""


class HttpServer:
    """Serves an application on an open port.

    Args:
        application: Answers requests.
        opened: The open port.
        tls: Its certificate; None for plain HTTP.
    """

    def __init__(self, application: ASGIApp, opened: socket.socket, *, tls: ServerTls | None = None) -> None:
        config = uvicorn.Config(
            application,
            http=BoundedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        # It warns of every broken request, and logs a traceback for each that has not ended when it stops:
        # strangers would fill the log.
        log = logging.getLogger("uvicorn.error")
        log.setLevel(logging.ERROR)
        log.addFilter(_is_of_a_defect)
        config.load()
        if tls is not None:
            config.ssl = tls.context()
        self._server = _Server(config)
        self._socket = opened
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to answer."""
        serving: Any = self._server.serve(sockets=[self._socket])
        self._task = asyncio.create_task(serving, name="http-server")

    async def stop(self) -> None:
        """Accepts nothing more, and waits a little for requests in progress."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task


def _is_of_a_defect(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the process."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens at open ports, as uvicorn does, which gives TLS handshakes a minute."""

        def connection() -> asyncio.Protocol:
            return BoundedConnection(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                connection,
                sock=opened,
                ssl=self.config.ssl,
                ssl_handshake_timeout=None if self.config.ssl is None else HANDSHAKE_SECONDS,
                backlog=self.config.backlog,
            )
            for opened in sockets or ()
        ]
        self.started = True
