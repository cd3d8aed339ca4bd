"""What an engine of containers does while its engine does not answer, and after it was closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.waiting import wait_until_async

from resolute.errors import UnavailableError
from resolute_engines.container import factory
from resolute_engines.container.containers import ListedContainer
from resolute_engines.container.engine import ContainerEngine
from resolute_engines.environment import EngineEnvironment
from resolute_engines.layout import layout
from resolute_engines.protocol import AllocationSpec, ContainerReport, ContainerState
from resolute_engines.settings import EngineSettings, PoolSettings

SPEC = AllocationSpec(allocation_id="t.1", placements=((0,),), address="a:1", token="token", pool="boxes")


def opened(folder: Path, name: str, **pool: Any) -> ContainerEngine:
    """An engine at a socket where nobody listens."""
    settings = EngineSettings(
        name=name,
        type="container",
        options={"url": f"unix://{folder}/nobody.sock"},
        pools=(PoolSettings(name="boxes", options={"image": "usual", **pool}, where="resource_pools[0]"),),
    )
    environment = EngineEnvironment(
        cluster_id="c",
        address="a:1",
        tls=None,
        outage_timeout=1.0,
        log_wait=1.0,
        runs_directory=folder / "runs",
        slots=None,
        nodes=1,
    )
    manager = factory.create_engine(settings, environment)
    assert isinstance(manager, ContainerEngine)
    return manager


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runtimes that are made: directories, without the packages that take their time."""
    found: list[Path] = []

    def make(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        found.append(folder)

    monkeypatch.setattr(factory, "make_runtime", make)
    return found


def closing(manager: ContainerEngine, body: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def whole() -> None:
        try:
            await asyncio.wait_for(body(), 60)
        finally:
            await manager.close()

    asyncio.run(whole())


def test_what_hinders_the_removal_of_old_runtimes_hinders_no_launch(tmp_path: Path, made: list[Path]) -> None:
    manager = opened(tmp_path, "podman")

    async def body() -> None:
        with pytest.raises(UnavailableError):
            await manager._containers.mounted()
        requests = [await manager._request(SPEC) for _ in range(2)]
        assert [request.runtime for request in requests] == [str(made[0])] * 2
        assert len(made) == 1

    closing(manager, body)


def test_engines_of_one_home_have_runtimes_of_their_own(tmp_path: Path, made: list[Path]) -> None:
    for name in ("podman", "../up"):
        manager = opened(tmp_path, name)
        closing(manager, partial(manager._request, SPEC))
    first, second = made
    assert first.name == second.name
    assert first.parent != second.parent
    assert {first.parent.parent, second.parent.parent} == {tmp_path / "runtimes"}


def test_a_defect_ends_neither_a_removal_nor_the_watch_over_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager, asked = opened(tmp_path, "podman"), 0
    found = ListedContainer(name="c-t.1-0", rank=0, status="running", allocation_id="t.1")

    async def containers(allocation_id: str) -> list[ListedContainer]:
        nonlocal asked
        asked += 1
        if asked <= 2:
            raise RuntimeError("a defect")
        return []

    async def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(manager._containers, "of", containers)
    monkeypatch.setattr(manager._containers, "remove", nothing)
    monkeypatch.setattr(manager._api, "until_stopped", nothing)

    async def body() -> None:
        nonlocal asked
        await manager.release("t.1")
        await wait_until_async(lambda: "t.1" not in manager.backlog)
        asked = 0
        manager._watch_one(found)
        events = manager.watch()
        report = await anext(events)
        assert isinstance(report, ContainerReport)
        assert (report.state, report.reason) == (ContainerState.ENDED, "somebody removed the container")

    closing(manager, body)
    said = capsys.readouterr().out
    assert said.count("a run cannot be removed yet") == 1
    assert said.count("the end of a container is not known") == 1


def test_an_engine_that_was_closed_opens_no_connection(tmp_path: Path) -> None:
    async def body() -> None:
        manager = opened(tmp_path, "podman")
        await manager.close()
        with pytest.raises(UnavailableError, match="is being stopped"):
            await manager.inspect("t.1")

    asyncio.run(asyncio.wait_for(body(), 60))


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        ({"slots": 4}, ((0, 1, 2, 3),)),
        ({"slots": 4, "slots_per_node": 1}, ((0,), (1,), (2,), (3,))),
        ({"slots": 5, "slots_per_node": 2}, ((0, 1), (2, 3), (4,))),
        ({"gpus": ["a", "b", "c"], "slots_per_node": 2}, ((0, 1), (2,))),
    ],
)
def test_a_trial_gets_as_many_containers_as_its_slots_fill(
    tmp_path: Path, pool: dict[str, Any], expected: tuple[tuple[int, ...], ...]
) -> None:
    (found,) = opened(tmp_path, "podman", **pool).pools()
    assert layout(found, [slot.id for slot in found.slots]) == expected


def test_a_pool_says_how_many_trials_without_slots_it_takes(tmp_path: Path, made: list[Path]) -> None:
    (usual,) = opened(tmp_path, "podman").pools()
    (few,) = opened(tmp_path, "podman", max_aux_containers_per_agent=3).pools()
    assert (usual.most_without_slots, few.most_without_slots) == (100, 3)
