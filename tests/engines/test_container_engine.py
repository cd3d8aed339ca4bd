"""The contract of engines, kept by containers of a real Podman through Docker's API."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import ControlPlane, control_plane
from support.engines.contract import (
    ALLOCATION,
    SECONDS,
    TRAIN,
    EngineContract,
    cleared,
    life,
    scenario,
    seen,
)
from support.engines.podman import IMAGE, PodmanService, podman_service
from support.engines.submissions import Submissions

from resolute.contracts.values import from_value, to_value
from resolute.errors import ResoluteError, UnavailableError
from resolute_experiments.resources.container.runtime import make_runtime, runtime_name
from resolute_experiments.resources.engine_environment import EngineEnvironment
from resolute_experiments.resources.protocol import (
    AllocationSpec,
    ContainerReport,
    ContainerState,
    ResourceManager,
)
from resolute_experiments.resources.registry import open_engine
from resolute_experiments.resources.settings import EngineSettings, PoolSettings, read_resource_settings

CLUSTER = f"{os.getpid():08x}-cluster"
DOCS = Path(__file__).parents[2] / "docs/engines.md"


def environment(folder: Path) -> EngineEnvironment:
    """A cluster of this process, which sends what is left to where it was."""
    return EngineEnvironment(
        cluster_id=CLUSTER,
        address="",
        tls=None,
        outage_timeout=3600.0,
        log_wait=1.0,
        runs_directory=folder / "runs",
        slots=None,
        nodes=1,
    )


class ContainerEngine:
    """Containers of Podman."""

    def __init__(self, service: PodmanService, folder: Path) -> None:
        self.service = service
        self._folder = folder
        self._runtime = folder / runtime_name()
        make_runtime(self._runtime)

    def control_plane(self, script: str, **changes: Any) -> AbstractContextManager[ControlPlane]:
        """One on a bridge of this machine."""
        return control_plane(script, host=self.service.host, **changes)

    call = "resolute_experiments.resources.container.api:DockerApi._bytes"

    def open(self, **pool: Any) -> ResourceManager:
        """Two slots."""
        return open_engine(*self._settings(pool))

    @property
    def opened_by(self) -> tuple[EngineSettings, EngineEnvironment]:
        """Its settings, and its cluster."""
        return self._settings({})

    def _settings(self, pool: dict[str, Any]) -> tuple[EngineSettings, EngineEnvironment]:
        settings = EngineSettings(
            name="podman",
            type="container",
            options={"url": self.service.url, "runtime": str(self._runtime)},
            pools=(
                PoolSettings(
                    name="boxes", options={"slots": 2, "image": IMAGE, **pool}, where="resource_pools[0]"
                ),
            ),
        )
        return settings, environment(self._folder)

    def spec(
        self, plane: ControlPlane, *, containers: int = 1, config: dict[str, Any] | None = None
    ) -> AllocationSpec:
        """One slot for each container."""
        return AllocationSpec(
            allocation_id=plane.spec.allocation_id,
            placements=tuple((rank,) for rank in range(containers)),
            address=plane.address,
            token="token-0",
            pool="boxes",
            config=config or {},
        )

    async def lose(self, allocation_id: str) -> None:
        """Kills the containers from outside."""
        label = f"label=resolute.allocation={allocation_id}"
        for name in self.service.podman.run("ps", "--quiet", "--filter", label).split():
            self.service.podman.run("kill", "--signal", "KILL", name)

    async def remains(self) -> Sequence[str]:
        """Containers, volumes and networks with the cluster's label."""
        label = f"label=resolute.cluster={CLUSTER}"
        commands = (
            ("ps", "--all", "--quiet"),
            ("volume", "ls", "--quiet"),
            ("network", "ls", "--quiet"),
        )
        return [
            name
            for command in commands
            for name in self.service.podman.run(*command, "--filter", label).split()
        ]


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanService]:
    """Podman, serving."""
    with podman_service(tmp_path_factory.mktemp("podman")) as service, service.serving():
        yield service


@pytest.fixture(scope="module")
def container_engine(podman: PodmanService, tmp_path_factory: pytest.TempPathFactory) -> ContainerEngine:
    """The engine, with one runtime for all tests."""
    return ContainerEngine(podman, tmp_path_factory.mktemp("engine"))


class TestContainers(EngineContract, Submissions):
    """Containers of Podman."""

    # A look, the image, the engine's kind, the network twice, volume and container, a look, the network, the
    # files, and the start.
    calls = 11

    @pytest.fixture
    def engine(self, container_engine: ContainerEngine) -> ContainerEngine:
        """Podman."""
        return container_engine


OTHER = "allocation-2"
LISTENS = "echo listening; exec python3 -m http.server 8000 --directory /resolute"
ATTEMPTS = """
import os, pathlib, socket, sys
def reads(path):
    return bool(pathlib.Path(path).read_bytes())
def connects(host, port):
    with socket.create_connection((host, port), timeout=3):
        return True
def finds(name):
    roots = [path for path in pathlib.Path("/").iterdir() if path.name not in {"proc", "sys", "resolute"}]
    return any(name in files for root in roots for _, _, files in os.walk(root))
def is_root():
    os.setuid(0)
    return True
def mounts():
    os.chroot("/resolute")
    return True
processes = list(pathlib.Path("/proc").glob("[0-9]*/cmdline"))
attempts = {
    "passwords of the image": lambda: reads("/etc/shadow"),
    "another run's order": lambda: finds("launch.json"),
    "the home of root": lambda: bool(os.listdir("/root")),
    "a file of the host": lambda: reads(sys.argv[1]),
    "the runtime, to write": lambda: bool(pathlib.Path("/opt/resolute/start.sh").write_text("")),
    "the socket of the engine": lambda: finds("podman.sock") or finds("docker.sock"),
    "a process outside": lambda: any(b"system\\0service" in one.read_bytes() for one in processes),
    "another run's network": lambda: connects(sys.argv[2], 8000),
    "another run by name": lambda: connects(sys.argv[3], 8000),
    "to be root": is_root,
    "to change its root": mounts,
}
for name, attempt in attempts.items():
    try:
        done = attempt()
    except (OSError, PermissionError):
        done = False
    print("REACHED" if done else "refused", name)
"""


def test_a_trial_reaches_nothing_of_others_and_of_the_machine(container_engine: ContainerEngine) -> None:
    engine = container_engine
    secret = engine._folder / "secret-of-the-host"
    secret.write_text("secret")

    async def body() -> None:
        name = f"resolute-{CLUSTER[:8]}-{OTHER}-0"
        with (
            engine.control_plane(LISTENS, allocation_id=OTHER) as other,
            engine.control_plane("", files={"attempts.py": ATTEMPTS}) as plane,
        ):
            async with cleared(engine, OTHER), life(engine) as living:
                await living.manager.launch(engine.spec(other))
                await seen(other, "listening")
                described = json.loads(engine.service.podman.run("inspect", name))[0]
                (network,) = described["NetworkSettings"]["Networks"].values()
                arguments = shlex.join([str(secret), network["IPAddress"], name])
                script = f"python3 attempts.py {arguments}; echo tried"
                config = {**from_value(plane.spec.config), "entrypoint": script}
                plane.spec.config.CopyFrom(to_value(config))
                await living.manager.launch(engine.spec(plane))
                await seen(plane, "tried")
                said = [text for text in plane.text() if text != "tried"]
                assert len(said) == 11
                assert [text for text in said if not text.startswith("refused ")] == []

    scenario(body)


def test_scripts_import_resolute_in_an_image_that_has_only_python(container_engine: ContainerEngine) -> None:
    engine = container_engine
    script = "python3 -c 'import determined as det, resolute; print(det.core.__name__)'; echo $?"

    async def body() -> None:
        with engine.control_plane(script) as plane:
            async with cleared(engine), life(engine) as living:
                await living.manager.launch(engine.spec(plane))
                await living.ended()
                assert plane.text() == ["resolute.core", "0"]

    scenario(body)


def test_the_example_of_the_docs_opens(tmp_path: Path) -> None:
    (example,) = [text for text in DOCS.read_text().split("```yaml\n") if "type: container" in text]
    (tmp_path / "pools.yaml").write_text(example.split("```")[0])
    settings = read_resource_settings(tmp_path / "pools.yaml")
    (told,) = [one for one in settings.engines if one.type == "container"]
    (pool,) = open_engine(told, environment(tmp_path)).pools()
    assert (pool.name, len(pool.slots)) == ("boxes", 4)


def test_an_image_that_cannot_be_pulled_is_the_reason_of_the_failure(
    container_engine: ContainerEngine,
) -> None:
    engine = container_engine

    async def body() -> None:
        with engine.control_plane("echo never") as plane:
            async with cleared(engine), life(engine) as living:
                image = {"environment": {"image": {"cpu": "localhost/nowhere:1"}}}
                with pytest.raises(ResoluteError, match="nowhere"):
                    await living.manager.launch(engine.spec(plane, config=image))
                pulled = [one for one in living.events if isinstance(one, ContainerReport)]
                assert pulled[0].state is ContainerState.STARTING
                assert "localhost/nowhere:1 is being pulled" in pulled[0].reason
                assert plane.calls == []

    scenario(body)


def test_the_limits_of_the_pool_hold_inside(container_engine: ContainerEngine) -> None:
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


def test_a_trial_goes_on_while_the_engine_is_away_and_its_end_is_heard_of_after_that(
    podman: PodmanService, container_engine: ContainerEngine, tmp_path: Path
) -> None:
    engine = ContainerEngine(replace(podman, socket=tmp_path / "other.sock"), container_engine._folder)

    async def body() -> None:
        with engine.control_plane(TRAIN, preemption_timeout=0.2) as plane:
            async with cleared(container_engine):
                with engine.service.serving() as served:
                    async with life(engine) as living:
                        await living.manager.launch(engine.spec(plane))
                        await seen(plane, "training")
                        served.kill()
                        await asyncio.to_thread(served.wait)
                        with pytest.raises(UnavailableError, match="does not answer"):
                            await living.manager.inspect(ALLOCATION)
                        with pytest.raises(UnavailableError):
                            await living.manager.launch(engine.spec(plane))
                        plane.send_signal(preempt=True)
                        await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                        with engine.service.serving():
                            (report,) = await living.ended()
                            assert report.exit is not None
                            assert await living.states() == [ContainerState.ENDED]

    scenario(body)
