"""Places within files of ended containers, of which the engine sends a file as a whole only."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.waiting import wait_until_async

from resolute.errors import FailedPreconditionError
from resolute_engines.container import held_files
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer
from resolute_engines.container.held_files import HeldFiles

SIZE = 1_000
CONTENT = bytes(number % 251 for number in range(SIZE))
PATH = "0/work/scene"


def archive(name: str, content: bytes) -> bytes:
    """A tar with one file."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        header = tarfile.TarInfo(name)
        header.size = len(content)
        tar.addfile(header, io.BytesIO(content))
    return written.getvalue()


class Ended(Containers):
    """One container of each allocation, which has ended."""

    async def of(self, allocation_id: str) -> list[ListedContainer]:
        return [ListedContainer(name="c", rank=0, status="exited", allocation_id=allocation_id)]


class Engine:
    """An engine that has the file; counts how often it is asked for it."""

    def __init__(self, socket: Path) -> None:
        self.sent = 0
        self.answers = asyncio.Event()
        self.answers.set()
        self._socket = socket

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[HeldFiles]:
        app = web.Application()
        app.router.add_get("/version", _about)
        app.router.add_route("*", "/v{version}/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, str(self._socket)).start()
        api = DockerApi(f"unix://{self._socket}")
        held = HeldFiles(api, Ended(api, cluster_id="c"), list_files=_listed)
        try:
            yield held
        finally:
            await held.close()
            await api.close()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if not request.path.endswith("/archive"):
            return web.json_response({"StatusCode": 0, "State": {"Running": False}})
        self.sent += 1
        await self.answers.wait()
        return web.Response(body=archive("scene", CONTENT))


async def _about(_: web.Request) -> web.Response:
    return web.json_response({"ApiVersion": "1.52", "MinAPIVersion": "1.40", "Components": []})


async def _listed(_: ListedContainer) -> bytes:
    return archive("listing.json", b'[["work/scene", %d]]' % SIZE)


def test_what_was_read_in_order_goes_on_at_any_place_and_a_far_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_files, "_FURTHEST", 400)

    async def body() -> None:
        engine = Engine(tmp_path / "docker.sock")
        async with engine.serving() as held:
            places = range(0, SIZE, 100)
            parts = [await held.read_file("t.1", PATH, offset=place, size=100) for place in places]
            assert b"".join(parts) == CONTENT
            assert engine.sent == 1
            assert await held.read_file("t.1", PATH, offset=400, size=10) == CONTENT[400:410]
            for offset in (401, SIZE - 1):
                with pytest.raises(FailedPreconditionError, match="read it from its beginning on"):
                    await held.read_file("t.1", PATH, offset=offset, size=10)
            assert engine.sent == 2
            assert await held.read_file("t.1", PATH, offset=SIZE, size=10) == b""

    asyncio.run(asyncio.wait_for(body(), 60))


def test_one_caller_at_a_time_skips_the_beginning_of_a_file(tmp_path: Path) -> None:
    async def body() -> None:
        engine = Engine(tmp_path / "docker.sock")
        async with engine.serving() as held:
            await held.list_files("t.1")
            engine.answers.clear()
            reads: list[Any] = [
                asyncio.create_task(held.read_file("t.1", PATH, offset=place, size=1))
                for place in range(1, 9)
            ]
            await wait_until_async(lambda: engine.sent > 0)
            for _ in range(200):  # enough for the others to have asked too
                await asyncio.sleep(0)
            assert engine.sent == 1
            engine.answers.set()
            assert b"".join(await asyncio.gather(*reads)) == CONTENT[1:9]

    asyncio.run(asyncio.wait_for(body(), 60))


def test_who_reads_many_files_ends_none_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_files, "_MOST_OPEN", 3)

    async def body() -> None:
        engine = Engine(tmp_path / "docker.sock")
        async with engine.serving() as held:
            await held.read_file("t.1", PATH, offset=0, size=10)
            for offset in range(20):
                await held.read_file("t.2", PATH, offset=offset, size=100)
            before = engine.sent
            assert await held.read_file("t.1", PATH, offset=10, size=10) == CONTENT[10:20]
            assert engine.sent == before

    asyncio.run(asyncio.wait_for(body(), 60))
