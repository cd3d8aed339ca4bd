"""The page's files, as `make page` builds them: one document, and assets with hashes in their names."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from resolute_gateway.web.asgi import Header, Send, respond
from resolute_gateway.web.reading import has_failed

BUILT = Path(__file__).parent.parent / "page"
"""Where the build puts them. They are part of wheels, and not of the repository."""
_ASSETS = "/assets/"
_BASE = b'<base href="./" />'
# What the machine says of types of files may differ, and browsers run no script of a wrong type.
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOREVER: Header = (b"cache-control", b"public, max-age=31536000, immutable")
# Scripts and styles are files of this origin: nothing within a document is run. A script that browsers start
# as a worker is under the policy of its own response.
_POLICY: Header = (
    b"content-security-policy",
    (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
    ),
)
_DOCUMENT_HEADERS: tuple[Header, ...] = (
    _POLICY,
    # Browsers tell the origin of the sign-in form only where the page lets them name a referrer.
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"Accept, Accept-Encoding"),
)


@dataclass(frozen=True)
class _File:
    content: bytes
    compressed: bytes
    kind: str

    @classmethod
    def read(cls, path: Path) -> _File:
        content = path.read_bytes()
        kind = _KINDS.get(path.suffix, "application/octet-stream")
        return cls(content, gzip.compress(content, mtime=0), kind)


class PageFiles:
    """Answers requests for the page. Its files are kept once they are read, until the page is built again.

    Args:
        root: Where they are.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._document = root / "index.html"
        self._reading: asyncio.Task[Mapping[str, _File]] | None = None
        self._read_of = 0
        """When the document that was read had been written."""

    @property
    def are_built(self) -> bool:
        """Whether there is a page."""
        return self._document.is_file()

    def serves(self, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a path is an asset, or a view of the page that a browser asks for.

        Args:
            path: Path of the request.
            headers: Its headers, with names in lower case.
        """
        is_view = "text/html" in headers.get("accept", "") and "." not in path.rpartition("/")[2]
        return (is_view or path.startswith(_ASSETS)) and self.are_built

    async def answer(self, path: str, headers: Mapping[str, str], send: Send) -> None:
        """Sends an asset, or the document that shows every view.

        Args:
            path: Path of the request.
            headers: Its headers, with names in lower case.
            send: Sends the response.
        """
        written = self._document.stat().st_mtime_ns
        if self._reading is None or written != self._read_of or has_failed(self._reading):
            self._reading, self._read_of = asyncio.create_task(asyncio.to_thread(self._read)), written
        files = await asyncio.shield(self._reading)
        if path.startswith(_ASSETS):
            await self._asset(files.get(path), headers, send)
            return
        # Relative to the view, so that it also holds below a path of a proxy that the gateway does not see.
        up = b"../" * (path.count("/") - 1) or b"./"
        document = files["/index.html"]
        body = document.content.replace(_BASE, b'<base href="%s" />' % up)
        await respond(send, 200, body, kind=document.kind, headers=_DOCUMENT_HEADERS)

    async def _asset(self, file: _File | None, headers: Mapping[str, str], send: Send) -> None:
        if file is None:
            # A tab that is older than the gateway asks for assets of its time.
            message = b"there is no such file; reload the page\n"
            await respond(send, 404, message, kind="text/plain", headers=[(b"cache-control", b"no-store")])
        elif "gzip" in headers.get("accept-encoding", ""):
            packed = [_POLICY, _FOREVER, (b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
            await respond(send, 200, file.compressed, kind=file.kind, headers=packed)
        else:
            whole = [_POLICY, _FOREVER, (b"vary", b"Accept-Encoding")]
            await respond(send, 200, file.content, kind=file.kind, headers=whole)

    def _read(self) -> Mapping[str, _File]:
        paths = [self._document, *(self._root / "assets").glob("*")]
        return {f"/{path.relative_to(self._root).as_posix()}": _File.read(path) for path in paths}
