"""The built documentation below ``/docs``: static files, with a policy that allows only their own scripts."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from resolute_gateway.web.read_once import ReadOnce

_SCRIPT = re.compile(rb"<script(?![^>]*\b(?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(rb"<style[^>]*>(.*?)</style>", re.DOTALL)
_STYLE_ATTRIBUTE = re.compile(rb'<[^>]*\sstyle="([^"]*)"')


class Documentation:
    """Answers GET below ``/docs``.

    The policy is read from the pages at the first request, so a rebuilt site needs a restart.

    Args:
        directory: Directory of the site that ``make docs`` has built.
    """

    def __init__(self, directory: Path) -> None:
        self._files = StaticFiles(directory=directory)
        self._policy = ReadOnce(partial(_policy, directory))
        self.routes: Sequence[Route] = [
            Route("/docs", self._enter),
            Route("/docs/{name:path}", self._page),
        ]
        """Where it answers."""

    async def _enter(self, request: Request) -> Response:
        # With the slash at its end relative links lead below it. A proxy may have put a path before it.
        return RedirectResponse("docs/", 308)

    async def _page(self, request: Request) -> Response:
        policy = await self._policy.get()
        name = request.path_params["name"]
        whole = f"{name}index.html" if name.endswith("/") or not name else name
        response = await self._files.get_response(whole, request.scope)
        response.headers["content-security-policy"] = policy
        return response


def _policy(directory: Path) -> str:
    scripts, styles, attributes = set[bytes](), set[bytes](), set[bytes]()
    for file in directory.rglob("*.html"):
        page = file.read_bytes()
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
    )


def _hashes(texts: Iterable[bytes]) -> list[str]:
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in texts)
    return sorted(f"'sha256-{digest}'" for digest in digests)
