"""The built site, below ``/docs``: static files, with a policy that lets only their own scripts run."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import mimetypes
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from resolute.errors import FailedPreconditionError
from resolute_gateway.web.asgi import Header, Send, refuse, respond
from resolute_gateway.web.reading import has_failed

ROOT = "/docs"
_INDEX = b"docs/"
_SCRIPT = re.compile(rb"<script(?![^>]*\b(?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(rb"<style[^>]*>(.*?)</style>", re.DOTALL)
_STYLE_ATTRIBUTE = re.compile(rb'<[^>]*\sstyle="([^"]*)"')


@dataclass(frozen=True)
class _Site:
    files: dict[str, Path]
    policy: bytes


class Documentation:
    """Answers GET below ``/docs``.

    The directory is read at the first request; a site that is built again needs a restart.

    Args:
        directory: Where ``make docs`` put the site.

    Raises:
        FailedPreconditionError: There is no site.
    """

    def __init__(self, directory: Path) -> None:
        if not (directory / "index.html").is_file():
            raise FailedPreconditionError(
                f"RESOLUTE_DOCS_DIR names {directory}, where there is no index.html; build the site first, "
                "or unset the variable"
            )
        self._directory = directory
        self._reading: asyncio.Task[_Site] | None = None

    async def answer(self, path: str, send: Send) -> None:
        """Answers a request for a path that begins with ``/docs``."""
        if path == ROOT:
            # With the slash at its end relative links lead below it. A proxy may have put a path before it.
            await respond(send, 308, headers=[(b"location", _INDEX)])
            return
        if self._reading is None or has_failed(self._reading):
            self._reading = asyncio.create_task(asyncio.to_thread(_read, self._directory))
        site = await asyncio.shield(self._reading)
        name = path.removeprefix(f"{ROOT}/")
        # Only what was found in the directory is served, whatever the path says.
        file = site.files.get(f"{name}index.html" if name.endswith("/") or not name else name)
        body = None if file is None else await asyncio.to_thread(_content, file)
        if file is None or body is None:
            await refuse(send, 404, code="not_found", message="the documentation has no such page")
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        headers: list[Header] = [(b"content-security-policy", site.policy)]
        await respond(send, 200, body, kind=_with_charset(kind), headers=headers)


def _content(file: Path) -> bytes | None:
    """Returns what is in a file; None if it was removed since the directory was read."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None


def _read(directory: Path) -> _Site:
    files = {
        path.relative_to(directory).as_posix(): path
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    pages = [path.read_bytes() for name, path in files.items() if name.endswith(".html")]
    return _Site(files, _policy(pages))


def _policy(pages: Iterable[bytes]) -> bytes:
    scripts, styles, attributes = set[bytes](), set[bytes](), set[bytes]()
    for page in pages:
        scripts.update(_SCRIPT.findall(page))
        styles.update(_STYLE.findall(page))
        attributes.update(_STYLE_ATTRIBUTE.findall(page))
    # Attributes count only with 'unsafe-hashes', which lets nothing else in than what is listed.
    inline = [*_hashes(styles), *(["'unsafe-hashes'", *_hashes(attributes)] if attributes else [])]
    return "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src 'self'", *_hashes(scripts)]),
            " ".join(["style-src 'self'", *inline]),
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    ).encode()


def _hashes(texts: Iterable[bytes]) -> list[str]:
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts)
    return sorted(f"'sha256-{digest}'" for digest in digests)


def _with_charset(kind: str) -> str:
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
