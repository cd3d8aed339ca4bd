"""Checks a call before the protocol library reads it: its name, its length, its headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from resolute_gateway.settings import HttpSettings
from resolute_gateway.web.answers import refusal
from resolute_gateway.web.bodies import max_body_bytes
from resolute_gateway.web.held_bodies import HeldBodies

_GRPC_NAME = re.compile(rb"[a-z0-9_.-]+")
_GRPC_VALUE = re.compile(rb"[ -~]*")
_PASSED_ON = (b"authorization", b"x-resolute-")


class BoundedCalls:
    """Passes checked calls to the protocol library.

    Args:
        calls: The application that answers calls.
        paths: The names of all calls.
        settings: Settings of HTTP.
        authorized: Adds the session's token to a call from a page of this origin.
    """

    def __init__(
        self,
        calls: ASGIApp,
        *,
        paths: Collection[str],
        settings: HttpSettings,
        authorized: Callable[[Scope], Scope],
    ) -> None:
        self._calls = calls
        self._paths = paths
        self._settings = settings
        self._authorized = authorized
        self._bodies = HeldBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a call."""
        headers = Headers(scope=scope)
        size = _declared_bytes(headers)
        refused = self._refused(scope["path"], headers, size)
        if refused is not None:
            await refused(scope, receive, send)
            return
        scope = self._authorized({**scope, "headers": _carried(scope["headers"])})
        with self._bodies.counted(receive) as counted:
            await self._calls(scope, counted, send)

    def _refused(self, path: str, headers: Headers, size: int | None) -> Response | None:
        kind = headers.get("content-type", "")
        if kind == "application/grpc" or kind.startswith("application/grpc+"):
            address = self._settings.grpc_address_at(headers.get("host", ""))
            return refusal(415, code="unimplemented", message=f"gRPC is served at {address}, not here")
        if path not in self._paths:
            message = "the cluster has no such call; /openapi.json lists those that it has"
            return refusal(404, code="unimplemented", message=message)
        limit = max_body_bytes(path, kind)
        if size is not None and size > limit:
            message = f"the body has {size} bytes; this call takes {limit} at most"
            return refusal(413, code="resource_exhausted", message=message)
        for name, value in headers.raw:
            if name.startswith(_PASSED_ON) and not _is_carried(name, value):
                message = (
                    f"the service cannot be given the header {name.decode('latin-1')}; its name may have "
                    "letters, digits, '_', '-' and '.', its value printable ASCII characters"
                )
                return refusal(400, code="invalid_argument", message=message)
        return None


def _declared_bytes(headers: Headers) -> int | None:
    """How long the body is that comes; None if nothing says so."""
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _carried(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that the protocol library can read. Services get none of the others."""
    return [(name, value) for name, value in headers if _is_carried(name, value)]


def _is_carried(name: bytes, value: bytes) -> bool:
    """Whether gRPC has a way to write a header."""
    return bool(_GRPC_NAME.fullmatch(name) and _GRPC_VALUE.fullmatch(value))
