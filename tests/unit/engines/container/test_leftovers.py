"""What a Podman leaves that is killed in the middle: half a container, or one that is removed for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from resolute.errors import ConflictError, NotFoundError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers
from resolute_engines.container.request import RANK

NAME = "resolute-c-t.1-0"


class KilledPodman(DockerApi):
    """Answers as Podman 4.3 does after a kill at a moment that no test can hit.

    Args:
        half_made: Names that its storage has, and of which it knows no container.
        containers: The states of those that it knows, by name.
    """

    def __init__(self, *, half_made: set[str], containers: Mapping[str, str]) -> None:
        super().__init__("unix:///nobody")
        self.half_made = half_made
        self.containers = dict(containers)
        self.volumes: set[str] = set()

    async def get(self, path: str, **query: Any) -> Any:
        labels = {RANK: "0", **dict(each.split("=") for each in query.get("filters", {}).get("label", ()))}
        if path == "/containers/json":
            return [
                {"Id": name, "Names": [f"/{name}"], "State": state, "Labels": labels}
                for name, state in self.containers.items()
            ]
        if path == "/volumes":
            return {"Volumes": [{"Name": name, "Labels": labels} for name in self.volumes]}
        if path == "/networks":
            return []
        if path == "/version":
            return {}
        name = path.split("/")[2]
        if name not in self.containers:
            raise NotFoundError(f"no container with name or ID {name} found")
        return {"State": {"Status": self.containers[name]}}

    async def post(self, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        if path == "/volumes/create":
            assert body is not None
            self.volumes.add(body["Name"])
        elif query["name"] in self.half_made | self.containers.keys():
            raise ConflictError(f"the container name {query['name']} is already in use")
        else:
            self.containers[query["name"]] = "created"

    async def delete(self, path: str, **query: Any) -> None:
        name = path.split("/")[2]
        self.half_made.discard(name)
        self.containers.pop(name, None)
        self.volumes.discard(name)


def test_half_a_container_is_made_again_and_a_whole_one_is_left_alone() -> None:
    podman = KilledPodman(half_made={NAME}, containers={"other": "running"})
    containers = Containers(podman, cluster_id="c")

    async def body() -> None:
        await containers.create(NAME, {}, {})
        assert podman.containers == {"other": "running", NAME: "created"}
        await containers.create("other", {}, {})
        assert podman.containers["other"] == "running"

    asyncio.run(body())


def test_one_that_is_being_removed_is_gone() -> None:
    podman = KilledPodman(half_made=set(), containers={NAME: "removing"})

    async def body() -> None:
        assert await Containers(podman, cluster_id="c").of("t.1") == []
        assert podman.containers == {}

    asyncio.run(body())


def test_a_removal_takes_half_a_container_with_it() -> None:
    podman = KilledPodman(half_made={NAME, f"{NAME}-salvage"}, containers={})
    podman.volumes.add(NAME)

    async def body() -> None:
        await Containers(podman, cluster_id="c").remove("t.1")
        assert (podman.half_made, podman.volumes) == (set(), set())

    asyncio.run(body())
