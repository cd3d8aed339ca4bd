"""Streamable HTTP on loopback, for clients that do not start the server themselves.

The server acts with the token of the user who started it, and every user of a machine can reach its loopback
interface. So each request needs the server's token and a host name of the loopback interface.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resolute.contracts.files.atomic_files import write_atomically
from resolute.errors import InvalidArgumentError, UnavailableError

if TYPE_CHECKING:
    import uvicorn
    from mcp.server.mcpserver import MCPServer
    from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
"""Where the protocol is served."""
_SHORTEST_TOKEN = 16


def listen(address: str) -> socket.socket:
    """Opens the port.

    Args:
        address: ``HOST:PORT``; port 0 picks a free one.

    Raises:
        InvalidArgumentError: It is no address of loopback.
        UnavailableError: The port is taken.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(host).version == 6 else socket.AF_INET
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback or not port.isdigit() or int(port) > 65535:
        raise InvalidArgumentError(
            f"--http is {address!r}; it must be an address of loopback with a port, such as 127.0.0.1:8765. "
            "To reach it from other machines, put a proxy with TLS in front"
        )
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, int(port)))
    except OSError as error:
        opened.close()
        raise UnavailableError(
            f"cannot listen on {address} ({error.strerror}); choose another port"
        ) from error
    return opened


def token_from(path: Path) -> str:
    """Reads the token that requests must carry; makes a new one if there is no file.

    Raises:
        InvalidArgumentError: The token is too short, or no text.
    """
    try:
        token = path.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(path, token)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"the token in {path} is not text in UTF-8; delete the file for a new one"
        ) from error
    if len(token) < _SHORTEST_TOKEN:
        raise InvalidArgumentError(
            f"the token in {path} has less than {_SHORTEST_TOKEN} characters; delete the file for a new one"
        )
    return token


def http_server(server: MCPServer[Any], opened: socket.socket, *, token: str) -> uvicorn.Server:
    """Makes a server of an open port; its ``serve`` takes the port and runs until ``should_exit`` is set.

    Args:
        server: The tools.
        opened: The port.
        token: What requests must carry as ``Authorization: Bearer TOKEN``.
    """
    # The extra `mcp` installs these.
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    port = opened.getsockname()[1]
    names = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]", opened.getsockname()[0])]
    # No page has a reason to call: requests with an Origin are refused.
    security = TransportSecuritySettings(allowed_hosts=names, allowed_origins=[])
    application = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    config = uvicorn.Config(
        _Authenticated(application, token),
        ws="none",  # only requests of HTTP are checked
        log_config=None,
        access_log=False,
        server_header=False,
    )
    return uvicorn.Server(config)


class _Authenticated:
    """Answers requests that carry the token."""

    def __init__(self, application: ASGIApp, token: str) -> None:
        self._application = application
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        given = headers.get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, self._expected):
            challenge = [(b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": challenge})
            await send({"type": "http.response.body", "body": b"the token is missing or wrong\n"})
            return
        await self._application(scope, receive, send)
