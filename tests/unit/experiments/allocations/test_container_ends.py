"""What the ends of containers mean of which no supervisor has told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resolute.errors import NotFoundError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer
from resolute_engines.container.files import EXIT_FILE
from resolute_engines.protocol import ContainerReport

KILLED = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "FinishedAt": "2026-11-27T13:00:09.5+01:00"}
FOUND = ListedContainer(name="resolute-c-t.1-0", rank=0, status="exited", allocation_id="t.1")


class Engine(DockerApi):
    """Has one container, which ended while its supervisor lived.

    Args:
        state: How it ended, in the engine's words.
        memory: Its memory limit in bytes; 0 for none.
    """

    def __init__(self, state: dict[str, Any], *, memory: int) -> None:
        super().__init__("unix:///nobody")
        self._answer_to_all = {"State": state, "HostConfig": {"Memory": memory}}

    async def get(self, path: str, **query: Any) -> Any:
        return self._answer_to_all

    async def get_archive(self, name: str, path: str) -> bytes:
        if path == EXIT_FILE:
            raise NotFoundError("no such file")
        return b""


def report(state: dict[str, Any], *, memory: int) -> ContainerReport:
    return asyncio.run(Containers(Engine(state, memory=memory), cluster_id="c").report(FOUND))


def test_a_container_that_was_killed_as_a_whole_for_its_memory_limit_has_failed() -> None:
    record = report(KILLED, memory=8 << 30).exit
    assert record is not None
    assert (record.exit_code, record.end_time) == (137, 1795780809.5)
    assert "the memory limit of its container, 8.0GiB" in record.failure
    assert "raise memory_per_slot of the pool" in record.failure


@pytest.mark.parametrize(
    ("changes", "memory"),
    [({}, 0), ({"OOMKilled": False}, 8 << 30), ({"ExitCode": 1}, 8 << 30)],
    ids=["its machine had no memory left", "killed by another", "not killed"],
)
def test_a_container_that_ended_otherwise_is_lost(changes: dict[str, Any], memory: int) -> None:
    assert report({**KILLED, **changes}, memory=memory).lost
