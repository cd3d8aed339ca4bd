"""The contract of engines, kept by containers of a real Podman and of a real Docker through Docker's API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.engines.containers.docker import DockerService, running_docker
from support.engines.containers.engine import CLUSTER, ContainerUnderTest, environment
from support.engines.containers.held_registry import HeldRegistry, held_registry
from support.engines.containers.image import IMAGE
from support.engines.containers.podman import PodmanService
from support.engines.contract import (
    BacklogContract,
    EngineContract,
    FilesContract,
    LinesContract,
    TokenContract,
)
from support.engines.session import ALLOCATION, SECONDS, TRAIN, cleared, engine_session, scenario, seen, until
from support.engines.submissions import Submissions
from support.pages.commands import yaml_of

from resolute.errors import DeadlineError, QuotaError, UnavailableError
from resolute_engines.container.client import DockerApi
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_engines.settings import read_resource_settings

OTHER = "allocation-2"
_WAITED_SECONDS = 3.0


class TestContainersOfPodman(
    EngineContract, FilesContract, LinesContract, BacklogContract, TokenContract, Submissions
):
    """Containers of Podman."""

    # The versions, a look, the image, the network twice, volume and container, a look, the network, the
    # files, and the start.
    calls = 11

    @pytest.fixture
    def engine(self, podman_engine: ContainerUnderTest) -> ContainerUnderTest:
        """Podman."""
        return podman_engine


class TestContainersOfDocker(
    EngineContract, FilesContract, LinesContract, BacklogContract, TokenContract, Submissions
):
    """Containers of Docker."""

    # Three more, by which Docker chooses a subnet for the network.
    calls = 14

    @pytest.fixture
    def engine(self, docker_engine: ContainerUnderTest) -> ContainerUnderTest:
        """Docker."""
        return docker_engine


def test_scripts_import_resolute_in_an_image_that_has_only_python(
    container_engine: ContainerUnderTest,
) -> None:
    engine = container_engine
    script = "python3 -c 'import determined as det, resolute; print(det.core.__name__)'; echo $?"

    async def body() -> None:
        with engine.control_plane(script) as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await session.ended()
                assert plane.text() == ["determined.core", "0"]

    scenario(body)


def test_the_example_of_the_docs_opens(tmp_path: Path) -> None:
    _, example = yaml_of("docs/containers.md", having="type: container")
    (tmp_path / "pools.yaml").write_text(example)
    settings = read_resource_settings(tmp_path / "pools.yaml")
    (told,) = [one for one in settings.engines if one.type == "container"]
    (pool,) = create_engine(told, environment(tmp_path)).pools()
    assert (pool.name, len(pool.slots)) == ("boxes", 4)


def test_an_image_that_cannot_be_pulled_is_the_reason_of_the_failure(
    container_engine: ContainerUnderTest,
) -> None:
    engine = container_engine

    async def body() -> None:
        with engine.control_plane("echo never") as plane:
            async with cleared(engine), engine_session(engine) as session:
                image = {"environment": {"image": {"cpu": "localhost/nowhere:1"}}}
                await session.engine.launch(engine.spec(plane, config=image))
                (ended,) = await session.ended()
                pulled = [one for one in session.events if isinstance(one, ContainerReport)]
                assert pulled[0].state is ContainerState.STARTING
                assert "localhost/nowhere:1 is being pulled" in pulled[0].reason
                assert ended.exit is not None
                assert "nowhere" in ended.exit.failure
                assert plane.calls == []

    scenario(body)


@contextmanager
def pulling_engine(
    podman: PodmanService, folder: Path, registry: HeldRegistry
) -> Iterator[ContainerUnderTest]:
    """The engine by a Podman of its own that asks a registry."""
    asking = replace(podman.podman, registries=registry.settings)
    service = replace(podman, podman=asking, socket=folder / "pulls.sock")
    with service.serving():
        yield ContainerUnderTest(service, folder, options={"image_timeout": SECONDS})


@pytest.fixture
def registry(podman: PodmanService, tmp_path: Path) -> Iterator[HeldRegistry]:
    """A registry with an image that has Python."""
    with held_registry(podman.podman, IMAGE, tmp_path) as registry:
        yield registry


def of_image(image: str) -> dict[str, Any]:
    """A config whose containers are of an image."""
    return {"environment": {"image": {"cpu": image}}}


def test_other_runs_go_on_while_a_registry_keeps_an_image_waiting(
    podman: PodmanService, tmp_path: Path, registry: HeldRegistry
) -> None:
    async def body(engine: ContainerUnderTest) -> None:
        with (
            engine.control_plane("echo pulled") as plane,
            engine.control_plane("echo beside", allocation_id=OTHER) as other,
        ):
            async with cleared(engine, OTHER), engine_session(engine) as session:
                waits = engine.spec(plane, config=of_image(registry.image))
                await session.engine.launch(waits)
                await asyncio.to_thread(registry.asked.wait, SECONDS)
                await session.engine.launch(waits)
                (report,) = await session.engine.inspect(ALLOCATION)
                assert report.state is ContainerState.STARTING
                assert f"image {registry.image} is being pulled" in report.reason

                await session.engine.launch(engine.spec(other))
                (ended,) = await session.ended()
                assert (ended.allocation_id, other.text()) == (OTHER, ["beside"])
                registry.let.set()
                await session.ended(2)
                assert plane.text() == ["pulled"]
                assert plane.calls.count("GetLaunchSpec") == 1

    with pulling_engine(podman, tmp_path, registry) as engine:
        scenario(partial(body, engine))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_run_that_waits_for_its_image_ends_at_once_and_has_lost_nothing(
    podman: PodmanService, tmp_path: Path, registry: HeldRegistry, end: str
) -> None:
    async def body(engine: ContainerUnderTest) -> None:
        with engine.control_plane("echo never") as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane, config=of_image(registry.image), containers=2))
                await asyncio.to_thread(registry.asked.wait, SECONDS)
                if end == "stop":
                    await session.engine.stop(ALLOCATION, grace=SECONDS)
                else:
                    await session.engine.kill(ALLOCATION)
                for report in await session.ended(2):
                    assert report.exit is not None
                    assert report.exit.acknowledged
                assert await session.engine.inspect(ALLOCATION) == []
                assert plane.calls == []

    with pulling_engine(podman, tmp_path, registry) as engine:
        scenario(partial(body, engine))


def test_a_run_waits_for_a_registry_that_is_unavailable(
    podman: PodmanService, tmp_path: Path, registry: HeldRegistry
) -> None:
    async def body(engine: ContainerUnderTest) -> None:
        with engine.control_plane("echo pulled") as plane:
            async with cleared(engine), engine_session(engine) as session:
                registry.down = True
                registry.let.set()
                await session.engine.launch(engine.spec(plane, config=of_image(registry.image)))

                async def told() -> bool:
                    reports = await session.engine.inspect(ALLOCATION)
                    return "cannot be pulled" in reports[0].reason

                await until(told, "the registry to be asked")
                registry.down = False
                await session.ended()
                assert plane.text() == ["pulled"]

    with pulling_engine(podman, tmp_path, registry) as engine:
        scenario(partial(body, engine))


def test_a_registry_that_says_nothing_is_not_taken_for_an_engine_that_is_away(
    podman: PodmanService, tmp_path: Path, registry: HeldRegistry
) -> None:
    async def body(engine: ContainerUnderTest) -> None:
        hasty = DockerApi(engine.service.url, silence_seconds=1.0)
        try:
            with pytest.raises(DeadlineError, match="does its registry answer"):
                async for _ in hasty.pull(registry.image):
                    pass
        finally:
            await hasty.close()

    with pulling_engine(podman, tmp_path, registry) as engine:
        scenario(partial(body, engine))


def test_a_run_that_spoils_the_record_of_its_end_is_lost(container_engine: ContainerUnderTest) -> None:
    engine = container_engine
    script = "cd /resolute/run && mkdir exit.json && head -c 20000000 /dev/zero > exit.json/x; exit 3"

    async def body() -> None:
        with engine.control_plane(script) as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                (report,) = await session.ended()
                assert report.lost
                assert await session.states() == [ContainerState.ENDED]

    scenario(body)


def test_what_is_left_is_sent_after_somebody_cleaned_the_engine_up(
    container_engine: ContainerUnderTest,
) -> None:
    engine, image = container_engine, "localhost/once:1"

    async def body() -> None:
        with engine.control_plane("echo training; sleep 1; echo last words; exit 0") as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane, config=of_image(image)))
                await seen(plane, "training")
                plane.takes_lines = False
                await session.ended()
                await asyncio.to_thread(engine.service.run, "rmi", image)
                # Podman keeps a network while a container has it.
                network = ("network", "rm", f"resolute-{CLUSTER[:8]}-{ALLOCATION}")
                await asyncio.to_thread(partial(engine.service.run, *network, check=False))
                plane.takes_lines = True
                await session.engine.release(ALLOCATION, token="token-fresh")
                await seen(plane, "last words")

    engine.service.run("tag", IMAGE, image)
    scenario(body)


def test_the_limits_of_the_pool_hold_inside(container_engine: ContainerUnderTest) -> None:
    engine = container_engine
    script = (
        "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; "
        "df --output=size --block-size=1 /dev/shm | tail -1; id -u; echo told"
    )

    async def body() -> None:
        with engine.control_plane(script) as plane:
            async with cleared(engine):
                manager = engine.open(memory_per_slot="512 MiB", cpus_per_slot=1)
                try:
                    config = {"resources": {"shm_size": 32 << 20}}
                    await manager.launch(engine.spec(plane, config=config))
                    await seen(plane, "told")
                    assert [text.strip() for text in plane.text()] == [
                        str(512 << 20),
                        str(32 << 20),
                        "10001",
                        "told",
                    ]
                finally:
                    await manager.close()

    scenario(body)


def test_who_waits_for_a_container_keeps_no_processor_busy(
    podman: PodmanService, podman_engine: ContainerUnderTest, tmp_path: Path
) -> None:
    service = replace(podman, socket=tmp_path / "other.sock")
    engine = ContainerUnderTest(service, podman_engine.folder)

    async def body() -> None:
        with engine.control_plane(TRAIN) as plane, service.serving() as served:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "training")
                used = await asyncio.to_thread(psutil.Process(served.pid).cpu_times)
                await asyncio.sleep(_WAITED_SECONDS)
                now = await asyncio.to_thread(psutil.Process(served.pid).cpu_times)
                assert now.user + now.system - used.user - used.system < _WAITED_SECONDS / 5

    scenario(body)


def test_a_trial_goes_on_while_the_engine_is_away_and_its_end_is_heard_of_after_that(
    podman: PodmanService, podman_engine: ContainerUnderTest, tmp_path: Path
) -> None:
    service = replace(podman, socket=tmp_path / "other.sock")
    engine = ContainerUnderTest(service, podman_engine.folder)

    async def body() -> None:
        with engine.control_plane(TRAIN, preemption_timeout=0.2) as plane:
            async with cleared(podman_engine):
                with service.serving() as served:
                    async with engine_session(engine) as session:
                        await session.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                        served.kill()
                        await asyncio.to_thread(served.wait)
                        with pytest.raises(UnavailableError, match="does not answer"):
                            await session.engine.inspect(ALLOCATION)
                        with pytest.raises(UnavailableError):
                            await session.engine.launch(engine.spec(plane))
                        plane.send_signal(preempt=True)
                        await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                        with service.serving():
                            (report,) = await session.ended()
                            assert report.exit is not None
                            assert await session.states() == [ContainerState.ENDED]

    scenario(body)


def test_a_launch_is_put_off_while_docker_has_no_subnet_left(tmp_path: Path) -> None:
    async def body(engine: ContainerUnderTest) -> None:
        with engine.control_plane("echo launched") as plane:
            async with cleared(engine), engine_session(engine) as session:
                await asyncio.to_thread(engine.service.run, "network", "create", "other")
                with pytest.raises(QuotaError, match="no subnet left"):
                    await session.engine.launch(engine.spec(plane))
                assert await session.engine.inspect(ALLOCATION) == []
                await asyncio.to_thread(engine.service.run, "network", "rm", "other")
                await session.engine.launch(engine.spec(plane))
                await session.ended()
                assert plane.text() == ["launched"]

    with running_docker(subnets="172.30.0.0/24") as docker:
        scenario(partial(body, ContainerUnderTest(docker, tmp_path)))


def test_trials_go_on_while_docker_is_away_where_its_settings_say_so(
    docker: DockerService, docker_engine: ContainerUnderTest
) -> None:
    engine = docker_engine

    async def body() -> None:
        with engine.control_plane(TRAIN, preemption_timeout=0.2) as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "training")
                await asyncio.to_thread(docker.kill)
                try:
                    with pytest.raises(UnavailableError, match="does not answer"):
                        await session.engine.inspect(ALLOCATION)
                    plane.send_signal(preempt=True)
                    await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                finally:
                    await asyncio.to_thread(docker.start)
                (report,) = await session.ended()
                assert report.exit is not None
                assert await session.states() == [ContainerState.ENDED]

    scenario(body)
