"""Containers that do not end when they are killed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from resolute.errors import UnavailableError
from resolute_engines.container import containers
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer


class HangingEngine(DockerApi):
    """One of which no container ends."""

    def __init__(self) -> None:
        super().__init__("unix:///nobody")
        self.killed: list[str] = []

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        assert query == {"signal": "SIGKILL"}
        self.killed.append(path)

    async def until_stopped(self, container: str) -> None:
        await asyncio.Event().wait()


def test_the_kill_of_a_container_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_KILL_SECONDS", 0.01)
    engine = HangingEngine()
    found = ListedContainer(name="c-t.1-0", rank=0, status="running", allocation_id="t.1")

    async def body() -> None:
        with pytest.raises(UnavailableError, match=r"container c-t\.1-0 still runs"):
            await asyncio.wait_for(Containers(engine, cluster_id="c").kill(found), 60)

    asyncio.run(body())
    assert engine.killed == ["/containers/c-t.1-0/kill"]
