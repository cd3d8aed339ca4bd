"""Versions of Docker's API, asked of a server that serves some and refuses the others as Docker does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.images.names import UnpulledImageError

LOST = '{"status": "Pulling from library/python"}\n{"errorDetail": {"message": "the disk is full"}}\n'


class Server:
    """Docker's API, of which the versions below one are served no longer."""

    def __init__(self, socket: Path, *, least: str) -> None:
        self.api = DockerApi(f"unix://{socket}")
        self.least = least
        self.fails_with = 0
        self.progress = LOST
        self.asked: list[str] = []
        self._socket = socket

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[DockerApi]:
        """Serves for a while; gives what asks it."""
        app = web.Application()
        app.router.add_get("/version", self._about)
        app.router.add_route("*", "/v{version}/{path:.*}", self._answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, str(self._socket)).start()
        try:
            yield self.api
        finally:
            await self.api.close()
            await runner.cleanup()

    async def _about(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.json_response({"ApiVersion": "1.52", "MinAPIVersion": self.least, "Components": []})

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        version = request.match_info["version"]
        if int(version.split(".")[1]) < int(self.least.split(".")[1]):
            reason = f"client version {version} is too old. Minimum supported API version is {self.least}"
            return web.json_response({"message": reason}, status=400)
        if self.fails_with:
            return web.json_response({"message": "not now"}, status=self.fails_with)
        return web.Response(text=self.progress) if request.path.endswith("/create") else web.json_response([])


@pytest.mark.parametrize(("least", "spoken"), [("1.12", "1.40"), ("1.40", "1.40"), ("1.44", "1.44")])
def test_it_speaks_the_oldest_version_that_both_have(tmp_path: Path, least: str, spoken: str) -> None:
    server = Server(tmp_path / "docker.sock", least=least)

    async def body() -> None:
        async with server.serving() as api:
            for _ in range(2):
                assert await api.get("/containers/json") == []
            assert not await api.is_podman()
        assert server.asked == ["/version", *(2 * [f"/v{spoken}/containers/json"])]

    asyncio.run(body())


def test_a_docker_that_is_upgraded_meanwhile_is_asked_in_its_new_version(tmp_path: Path) -> None:
    server = Server(tmp_path / "docker.sock", least="1.12")

    async def body() -> None:
        async with server.serving() as api:
            await api.get("/containers/json")
            server.least = "1.44"
            with pytest.raises(UnavailableError, match=r"client version 1\.40 is too old"):
                await api.get("/containers/json")
            assert await api.get("/containers/json") == []

    asyncio.run(body())


def test_the_detail_of_a_failed_pull_is_its_reason(tmp_path: Path) -> None:
    server = Server(tmp_path / "docker.sock", least="1.44")

    async def body() -> None:
        async with server.serving() as api:
            pulling = api.pull("python")
            assert await anext(pulling) == "Pulling from library/python"
            with pytest.raises(FailedPreconditionError, match="cannot be pulled: the disk is full"):
                await anext(pulling)
        assert server.asked[-1] == "/v1.44/images/create"

    asyncio.run(body())


@pytest.mark.parametrize("progress", ['{"status": "Pull', '{"status": "' + "x" * (1 << 20)])
def test_progress_that_cannot_be_read_is_the_reason_why_an_image_is_not_there_yet(
    tmp_path: Path, progress: str
) -> None:
    server = Server(tmp_path / "docker.sock", least="1.44")
    server.progress = progress

    async def body() -> None:
        async with server.serving() as api:
            with pytest.raises(
                UnpulledImageError, match=r"image python cannot be pulled: the answer of unix:.* cannot"
            ):
                await anext(api.pull("python"))

    asyncio.run(body())


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (429, UnavailableError),
        (502, UnavailableError),
        (503, UnavailableError),
        (500, FailedPreconditionError),
    ],
)
def test_an_engine_that_cannot_answer_now_is_asked_again(
    tmp_path: Path, status: int, failure: type[Exception]
) -> None:
    server = Server(tmp_path / "docker.sock", least="1.44")
    server.fails_with = status

    async def body() -> None:
        async with server.serving() as api:
            with pytest.raises(failure, match="not now"):
                await api.get("/containers/json")

    asyncio.run(body())
