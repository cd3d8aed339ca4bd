"""The page's files: one document for every view, assets that are cached for ever, nothing else of a disk."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.services.gateway import GatewayClient, gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

DOCUMENT = (
    '<!doctype html><head><base href="./" /><title>Resolute</title>'
    '<script type="module" src="./assets/index.js"></script></head>'
)
SCRIPT = b"export const answer = 42;\n" * 50
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


def run(page: Path, scenario: Callable[[GatewayClient], Awaitable[None]]) -> None:
    async def serve() -> None:
        async with scripted_grpc() as address, gateway(address, page=page) as http:
            await scenario(http)

    asyncio.run(asyncio.wait_for(serve(), 60))


def built(folder: Path) -> Path:
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(DOCUMENT)
    (folder / "assets/index.js").write_bytes(SCRIPT)
    (folder.parent / "secret.js").write_text("secret")
    return folder


async def asset_of(http: GatewayClient) -> str:
    """The address of the script that the document names."""
    (source,) = re.findall(r'src="\.(/assets/[^"]+)"', (await get(http, "/", **BROWSER)).data.decode())
    return str(source)


async def get(http: GatewayClient, path: str, **headers: str) -> Any:
    return await http.request(
        "GET", path, headers={name.replace("_", "-"): to for name, to in headers.items()}
    )


def test_browsers_get_one_document_whose_base_is_relative_to_the_view(tmp_path: Path) -> None:
    async def scenario(http: GatewayClient) -> None:
        for path, base in (
            ("/", "./"),
            ("/experiments/7", "../"),
            ("/a/b/c", "../../"),
            ("/sign-in?code=x", "./"),
        ):
            answer = await get(http, path, **BROWSER)
            assert answer.status == 200, path
            assert f'<base href="{base}" />' in answer.data.decode(), path
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
        for path in ("/", "/experiments/7"):
            text = await get(http, path, accept="*/*")
            assert "<base" not in text.data.decode(), path
        assert (await get(http, "/healthz", **BROWSER)).data == b"ok\n"

    run(built(tmp_path), scenario)


def test_assets_are_kept_for_ever_and_compressed_for_whoever_can_read_that(tmp_path: Path) -> None:
    async def scenario(http: GatewayClient) -> None:
        path = await asset_of(http)
        plain = await get(http, path)
        assert plain.data == SCRIPT
        assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
        assert "immutable" in plain.headers["cache-control"]
        assert "content-encoding" not in plain.headers
        packed = await asyncio.to_thread(
            http.pool.request,
            "GET",
            path,
            headers={"accept-encoding": "br, gzip"},
            decode_content=False,
        )
        assert packed.headers["content-encoding"] == "gzip"
        assert len(packed.data) < len(SCRIPT)
        assert gzip.decompress(packed.data) == SCRIPT

    run(built(tmp_path), scenario)


def test_nothing_but_the_assets_is_read_from_the_disk(tmp_path: Path) -> None:
    async def scenario(http: GatewayClient) -> None:
        for path in (
            "/assets/%2e%2e/index.html",
            "/assets/..%2f..%2fsecret.js",
            "/assets/index.js",
            "/assets/index.html",
            "/assets/0123456789abcdef/index.js",
            "/assets/",
        ):
            answer = await get(http, path, **BROWSER)
            assert (answer.status, answer.headers["cache-control"]) == (404, "no-store"), path
        assert (await get(http, "/index.html", **BROWSER)).status == 404

    (tmp_path / "page").mkdir()
    run(built(tmp_path / "page"), scenario)


def test_a_page_that_is_built_again_is_read_again(tmp_path: Path) -> None:
    page = built(tmp_path)

    async def scenario(http: GatewayClient) -> None:
        before = await asset_of(http)
        assert (await get(http, before)).data == SCRIPT
        (page / "assets/index.js").write_bytes(SCRIPT + b"more()\n")
        (page / "index.html").write_text(DOCUMENT.replace("Resolute", "Newer"))
        written = (page / "index.html").stat().st_mtime_ns + 1_000_000_000
        os.utime(page / "index.html", ns=(written, written))
        assert "Newer" in (await get(http, "/", **BROWSER)).data.decode()
        assert (await get(http, await asset_of(http))).data == SCRIPT + b"more()\n"
        assert (await get(http, before)).status == 404

    run(page, scenario)


def test_a_failed_read_of_the_page_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(f"{path} is on a disk that is away")

    async def scenario(http: GatewayClient) -> None:
        with monkeypatch.context() as away:
            away.setattr(Path, "read_bytes", fail)
            assert (await get(http, "/", **BROWSER)).status == 500
        assert (await get(http, "/", **BROWSER)).status == 200

    run(built(tmp_path), scenario)


def test_an_installation_without_the_page_says_how_to_build_it(tmp_path: Path) -> None:
    async def scenario(http: GatewayClient) -> None:
        answer = await get(http, "/", **BROWSER)
        assert "make page" in answer.data.decode()
        assert (await get(http, "/experiments/7", **BROWSER)).status == 404
        assert b"<form" in (await get(http, "/sign-in", **BROWSER)).data

    run(tmp_path, scenario)
