"""The page's files, as `make page` builds them: a document, and assets below a digest of the build."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from resolute_gateway.requirements import has_page
from resolute_gateway.web.read_once import ReadOnce

_BASE = b'<base href="./" />'
_ASSETS = b'"./assets/'
# What the machine says of types of files may differ, and browsers run no script of a wrong type.
_KINDS = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# Scripts and styles are files of this origin: nothing within a document is run. A script that browsers start
# as a worker is under the policy of its own response.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'"
)
_DOCUMENT_HEADERS = {
    "content-security-policy": _POLICY,
    # Browsers tell the origin of the sign-in form only where the page lets them name a referrer.
    "referrer-policy": "same-origin",
    "cache-control": "no-cache",
    "vary": "Accept, Accept-Encoding",
}
_ASSET_HEADERS = {
    "content-security-policy": _POLICY,
    "cache-control": "public, max-age=31536000, immutable",
    "vary": "Accept-Encoding",
}


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


@dataclass(frozen=True)
class _Build:
    document: bytes
    assets: Mapping[str, _File]
    """By their paths below `/assets/`."""

    @classmethod
    def read(cls, root: Path) -> _Build:
        document = (root / "index.html").read_bytes()
        files = {path.name: _File.read(path) for path in sorted((root / "assets").glob("*"))}
        digest = hashlib.sha256(document)
        for name, file in files.items():
            digest.update(f"{name} {len(file.content)}\n".encode() + file.content)
        # Assets name each other relative to themselves: no address leads to the file of another build.
        folder = digest.hexdigest()[:16]
        return cls(
            document.replace(_ASSETS, b'"./assets/%s/' % folder.encode()),
            {f"{folder}/{name}": file for name, file in files.items()},
        )


class PageFiles:
    """Answers requests for the page. Files are kept in memory until the page is built again.

    Args:
        root: Directory of the files.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._document = root / "index.html"
        self._build = ReadOnce(partial(_Build.read, root))
        self._read_of = 0
        """When the document that was read had been written."""

    @property
    def are_built(self) -> bool:
        """Whether there is a page."""
        return has_page(self._root)

    def has_view(self, request: Request) -> bool:
        """Whether a browser asks for a view of the page."""
        last = request.scope["path"].rpartition("/")[2]
        return "text/html" in request.headers.get("accept", "") and "." not in last and self.are_built

    async def view(self, request: Request) -> Response:
        """The document, which shows every view."""
        # Relative to the view, so that it also holds below a path of a proxy that the gateway does not see.
        up = b"../" * (request.scope["path"].count("/") - 1) or b"./"
        body = (await self._current()).document.replace(_BASE, b'<base href="%s" />' % up)
        return Response(body, media_type="text/html", headers=_DOCUMENT_HEADERS)

    async def asset(self, request: Request) -> Response:
        """An asset, by the path that the document names."""
        file = (await self._current()).assets.get(request.path_params["path"]) if self.are_built else None
        if file is None:
            # A tab that is older than the gateway asks for assets of its time.
            message = "there is no such file; reload the page\n"
            return PlainTextResponse(message, 404)
        if "gzip" in request.headers.get("accept-encoding", ""):
            headers = {**_ASSET_HEADERS, "content-encoding": "gzip"}
            return Response(file.compressed, media_type=file.kind, headers=headers)
        return Response(file.content, media_type=file.kind, headers=_ASSET_HEADERS)

    async def _current(self) -> _Build:
        written = self._document.stat().st_mtime_ns
        if written != self._read_of:
            self._build, self._read_of = ReadOnce(partial(_Build.read, self._root)), written
        return await self._build.get()
