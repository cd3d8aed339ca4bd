"""Pods whose image has no Resolute are given it from the image of the services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from compose_demo.images import Images
from support.backends import need_module
from support.daemons.containers import Podman
from support.daemons.kubernetes import KubernetesCluster, running_kubernetes
from support.engines.containers.image import IMAGE, root_file_system
from support.engines.session import cleared, engine_session, scenario, seen

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from support.engines.kubernetes_engine import KubernetesUnderTest  # noqa: E402 - wants what was asked for above

TRIALS = f"{IMAGE}:1"
USES = "import determined, resolute, sys; print(resolute.__name__, sys.version_info[:2] >= (3, 10))"


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[KubernetesCluster]:
    """A Kubernetes of one node."""
    with running_kubernetes() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def loaded(
    kubernetes: KubernetesCluster, podman: Podman, images: Images, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both images, on the node."""
    podman.run("import", str(root_file_system()), TRIALS)
    for number, image in enumerate((images.services, TRIALS)):
        archive = tmp_path_factory.mktemp("images") / f"{number}.tar"
        podman.run("save", "--format=docker-archive", f"--output={archive}", image)
        kubernetes.load_images(archive)


@pytest.mark.usefixtures("loaded")
def test_a_pod_of_an_image_with_python_alone_runs_a_trial(
    kubernetes: KubernetesCluster, images: Images, tmp_path: Path
) -> None:
    pool = {"image": TRIALS, "pod_spec": {}, "memory_per_slot": "512 MiB"}
    # Root, by the options of the test's Kubernetes: the topmost directory of its images is root's alone.
    options = {"runtime_image": images.services, "python": "python3"}
    engine = KubernetesUnderTest(kubernetes, tmp_path, pool=pool, **options)

    async def body() -> None:
        with engine.control_plane(f"python3 -c '{USES}'; echo tried") as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "tried")
                assert plane.text() == ["resolute True", "tried"]

    scenario(body)
