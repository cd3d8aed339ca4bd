"""The contract of engines, kept by a real Kubernetes of one node; and what is Kubernetes' own."""

from __future__ import annotations

import asyncio
import copy
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.backends import need_module
from support.daemons.kubernetes import KubernetesCluster
from support.engines.contract import BacklogContract, EngineContract, LinesContract, QueueContract
from support.engines.session import (
    ALLOCATION,
    SECONDS,
    STUBBORN,
    TRAIN,
    cleared,
    engine_session,
    scenario,
    seen,
    until,
)
from support.engines.submissions import Submissions
from support.pages.commands import yaml_of
from support.ports import free_port

from resolute.errors import InvalidArgumentError, UnavailableError
from resolute_engines.environment import EngineEnvironment
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import (
    ContainerState,
    EvictionNotice,
    Placement,
)
from resolute_engines.settings import read_resource_settings

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from support.engines.kubernetes_engine import KubernetesUnderTest  # noqa: E402 - wants what was asked for above

from resolute_engines.kubernetes.connection import KubernetesApi  # noqa: E402
from resolute_engines.kubernetes.pods import CONTAINER  # noqa: E402

SAVES = (
    'trap "echo hit; exit 9" TERM; echo training; '
    "until python3 -c \"import socket; socket.create_connection(('{host}', {port}))\" 2>/dev/null; "
    "do sleep 0.1; done; echo saved"
)
"""Dies of a SIGTERM; ends well, as after a checkpoint, once a port is open."""


@pytest.fixture
def make(kubernetes: KubernetesCluster, tmp_path: Path) -> Callable[..., KubernetesUnderTest]:
    """Makes engines of other settings."""

    def make(*, pool: dict[str, Any] | None = None, **options: Any) -> KubernetesUnderTest:
        return KubernetesUnderTest(kubernetes, tmp_path, pool=pool or {}, **options)

    return make


class TestKubernetes(EngineContract, LinesContract, BacklogContract, Submissions):
    """A Kubernetes of one node."""

    # Service, Secret, Pod, a look at the Pods, the mark that they are all there, and another look.
    calls = 6

    @pytest.fixture
    def engine(self, make: Callable[..., KubernetesUnderTest]) -> KubernetesUnderTest:
        """Pods of its own."""
        return make()

    def test_what_waits_of_a_run_that_is_stopped_is_taken_away_at_once_and_the_rest_exits_by_itself(
        self, engine: KubernetesUnderTest
    ) -> None:
        alone = {
            "labelSelector": {"matchLabels": {"resolute/cluster": engine.cluster}},
            "topologyKey": "kubernetes.io/hostname",
        }
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
        config = {"environment": {"pod_spec": {"spec": {"affinity": affinity}}}}

        async def body() -> None:
            with engine.control_plane(TRAIN, container_count=2, collective_key="k") as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane, containers=2, config=config))

                    async def one_runs() -> bool:
                        states = await session.states()
                        return sorted(state.value for state in states) == ["QUEUED", "RUNNING"]

                    await until(one_runs, "one Pod to run while the other waits")
                    await asyncio.to_thread(plane.wait_for, lambda: plane.announced, seconds=SECONDS)
                    (first,) = plane.announced
                    await session.engine.stop(ALLOCATION, grace=3600.0)
                    reports = await session.ended(2)
                    assert {report.container_rank for report in reports} == {0, 1}
                    for report in reports:
                        assert report.exit is not None
                        assert (report.exit.exit_code, report.exit.acknowledged) == (0, True)
                    async with engine_session(engine) as second:
                        told = {one.container_rank: one for one in await second.engine.inspect(ALLOCATION)}
                        assert all(one.exit is not None and one.exit.acknowledged for one in told.values())
                    assert not [one for one in session.events if isinstance(one, EvictionNotice)]
                    assert [said.container_rank for said in plane.exits] == [first]

        scenario(body)

    def test_evicted_run_is_told_by_the_platform_and_ends_by_itself(
        self, engine: KubernetesUnderTest
    ) -> None:
        host, port = engine.kubernetes.host, free_port()

        async def body() -> None:
            with engine.control_plane(SAVES.format(host=host, port=port)) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "training")
                    (pod,) = await engine.objects("pods")
                    name = pod["metadata"]["name"]
                    await engine.create(f"pods/{name}/eviction", {"metadata": {"name": name}})
                    await asyncio.to_thread(plane.wait_for, lambda: plane.preemptions, seconds=SECONDS)
                    with socket.create_server((host, port)):
                        await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                    assert plane.exits[0].exit_code == 0
                    assert (plane.text()[0], plane.text()[-1]) == ("training", "saved")
                    assert "hit" not in plane.text()
                    await session.ended()
                    (notice,) = [one for one in session.events if isinstance(one, EvictionNotice)]
                    assert name in notice.reason

        scenario(body)

    def test_pod_that_is_deleted_from_outside_without_a_grace_is_lost(
        self, engine: KubernetesUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(STUBBORN) as plane:
                async with cleared(engine):
                    async with engine_session(engine) as session:
                        await session.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                        (pod,) = await engine.objects("pods")
                        await engine.delete(f"pods/{pod['metadata']['name']}", grace_seconds=1)
                        (report,) = await session.ended()
                        assert report.lost
                        await session.engine.launch(engine.spec(plane))
                        assert await session.states() == [ContainerState.ENDED]
                    async with engine_session(engine) as second:
                        (report,) = await second.engine.inspect(ALLOCATION)
                        assert report.lost
                        assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    def test_run_goes_on_while_kubernetes_is_away_and_its_end_is_heard_of_after_that(
        self, kubernetes: KubernetesCluster, engine: KubernetesUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane("echo training; sleep 1; echo more; exit 7") as plane:
                async with cleared(engine):
                    async with engine_session(engine) as first:
                        await first.engine.launch(engine.spec(plane))
                        await seen(plane, "training")
                    with kubernetes.silent_api_server():
                        hasty = engine.open()
                        connect = partial(KubernetesApi.connect, kubeconfig=kubernetes.kubeconfig)
                        hasty._connect = partial(connect, deadline_seconds=2.0)  # type: ignore[attr-defined]
                        try:
                            with pytest.raises(UnavailableError, match="did not answer"):
                                await hasty.inspect(ALLOCATION)
                            with pytest.raises(UnavailableError, match="did not answer"):
                                await hasty.launch(engine.spec(plane))
                        finally:
                            await hasty.close()
                        await asyncio.to_thread(plane.wait_for, lambda: plane.exits, seconds=SECONDS)
                        assert plane.text() == ["training", "more"]
                    async with engine_session(engine) as second:

                        async def over() -> bool:
                            return await second.states() == [ContainerState.ENDED]

                        await until(over, "the end to be known")
                        (report,) = await second.engine.inspect(ALLOCATION)
                        assert report.exit is not None
                        assert report.exit.exit_code == 7
                    assert plane.calls.count("GetLaunchSpec") == 1

        scenario(body)

    @pytest.mark.parametrize("image", ["localhost/none:1", "No/Name"])
    def test_image_that_cannot_be_had_is_the_failure_of_the_run(
        self, make: Callable[..., KubernetesUnderTest], image: str
    ) -> None:
        engine = make(image_timeout=1)

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    named = {"environment": {"image": {"cpu": image}}}
                    await session.engine.launch(engine.spec(plane, config=named))
                    (report,) = await session.ended()
                    assert report.exit is not None
                    assert report.exit.failed_before_entrypoint
                    assert image in report.exit.failure
                    assert await session.states() == [ContainerState.ENDED]

        scenario(body)

    def test_supervisor_that_cannot_start_is_the_failure_of_the_run(
        self, make: Callable[..., KubernetesUnderTest]
    ) -> None:
        engine = make(python="/usr/bin/false")

        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    (report,) = await session.ended()
                    assert report.exit is not None
                    assert report.exit.failed_before_entrypoint
                    assert "did not start" in report.exit.failure

        scenario(body)

    def test_config_and_pool_have_their_effect_inside(self, make: Callable[..., KubernetesUnderTest]) -> None:
        engine = make(pool={"memory_per_slot": "512 MiB"})
        script = (
            "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; "
            "df --output=target,fstype /dev/shm | tail -1; id -u; echo $SAID; echo told"
        )
        said = {"name": CONTAINER, "env": [{"name": "SAID", "value": "by the config"}]}
        config = {
            "resources": {"shm_size": 32 << 20},
            "environment": {"pod_spec": {"spec": {"containers": [said]}}},
        }

        async def body() -> None:
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane, config=config))
                    await seen(plane, "told")
                    assert [" ".join(text.split()) for text in plane.text()] == [
                        *(str(512 << 20), "/dev/shm tmpfs", "0", "by the config", "told")
                    ]

        scenario(body)

    def test_a_pod_sees_the_checkpoints_of_its_trial_s_workspace_alone(
        self, make: Callable[..., KubernetesUnderTest], kubernetes: KubernetesCluster, tmp_path: Path
    ) -> None:
        directory, own = "/srv/checkpoints", "/srv/checkpoints/workspaces-c/3"
        stored = tmp_path / "stored"
        for workspace in ("3", "4"):
            (stored / "workspaces-c" / workspace / "one").mkdir(parents=True)
        (stored / "outside").mkdir()
        (stored / "workspaces-c" / "3" / "link").symlink_to("../4")
        pod_spec = copy.deepcopy(kubernetes.pool_options["pod_spec"])
        pod_spec["spec"]["volumes"].append({"name": "checkpoints", "hostPath": {"path": str(stored)}})
        (container,) = [each for each in pod_spec["spec"]["containers"] if each["name"] == CONTAINER]
        container["volumeMounts"].append({"name": "checkpoints", "mountPath": directory})
        engine = make(pool={"pod_spec": pod_spec, "checkpoint_directories": [directory]})
        script = (
            f"cd {directory}; echo $(ls -A . workspaces-c workspaces-c/3); "
            f"ls workspaces-c/3/link/ 2>/dev/null; echo weights > {own}/one/model.pt; echo saved"
        )

        async def body() -> None:
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    spec = replace(engine.spec(plane), checkpoint_directory=own)
                    await session.engine.launch(spec)
                    await seen(plane, "saved")
                    assert plane.text() == [
                        ".: workspaces-c workspaces-c: 3 workspaces-c/3: link one",
                        "saved",
                    ]

        scenario(body)
        assert (stored / "workspaces-c" / "3" / "one" / "model.pt").read_text() == "weights\n"

    def test_nothing_stays_of_what_a_script_leaves_behind(self, engine: KubernetesUnderTest) -> None:
        script = (
            "for each in 1 2 3 4 5 6 7 8; do sh -c 'sleep 0 & exit'; done; "
            "while grep -lqs '^State:.Z' /proc/[0-9]*/status; do sleep 0.1; done; echo none"
        )

        async def body() -> None:
            with engine.control_plane(script) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    await session.engine.launch(engine.spec(plane))
                    await seen(plane, "none")

        scenario(body)

    def test_fields_of_a_pod_spec_that_are_the_platform_s_are_refused_by_name(
        self, engine: KubernetesUnderTest
    ) -> None:
        async def body() -> None:
            with engine.control_plane(TRAIN) as plane:
                async with cleared(engine), engine_session(engine) as session:
                    config = {"environment": {"pod_spec": {"spec": {"hostNetwork": True}}}}
                    with pytest.raises(
                        InvalidArgumentError, match=r"environment\.pod_spec\.spec\.hostNetwork"
                    ):
                        await session.engine.launch(engine.spec(plane, config=config))

        scenario(body)


class TestKubernetesQueue(QueueContract):
    """Pods that want more processors than the node has."""

    @pytest.fixture
    def engine(self, make: Callable[..., KubernetesUnderTest]) -> KubernetesUnderTest:
        """A pool whose slots fit nowhere."""
        return make(pool={"cpus_per_slot": 1000})

    @pytest.fixture
    def never_fits(self) -> tuple[int, str]:
        """One Pod would wait as well."""
        return 2, "Insufficient cpu"


def test_the_example_of_the_docs_opens(tmp_path: Path) -> None:
    _, example = yaml_of("docs/kubernetes.md", having="type: kubernetes\n")
    (tmp_path / "pools.yaml").write_text(example)
    settings = read_resource_settings(tmp_path / "pools.yaml")
    (told,) = [one for one in settings.engines if one.type == "kubernetes"]
    environment = EngineEnvironment(
        cluster_id="a",
        address="",
        tls=None,
        outage_timeout=1.0,
        log_wait=1.0,
        runs_directory=tmp_path,
        slots=None,
        nodes=1,
    )
    (pool,) = create_engine(told, environment).pools()
    assert (pool.name, pool.slots_per_node, pool.placement) == ("pods", 8, Placement.ENGINE)
