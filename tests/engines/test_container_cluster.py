"""A whole cluster whose trials are containers of a real Podman, which reach it by TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from support.clusters.embedded import EmbeddedCluster
from support.containers import Podman
from support.engines.image import IMAGE
from support.engines.podman import podman_service
from support.ports import free_port
from support.waiting import wait_until

from resolute_engines.settings import FILE_NAME

SECONDS = 240.0
SETTINGS = """
resource_pools: [{{pool_name: boxes, engine: podman, slots: 2, image: "{image}"}}]
engines:
  podman:
    type: container
    url: {url}
    services_address: {address}
    services_certificate: {certificate}
    checkpoint_directories: [{storage}]
"""
CONFIG = """
name: boxed
checkpoint_storage: {{type: shared_fs, host_path: {storage}}}
entrypoint: python3 train.py
resources: {{shm_size: 32 MiB}}
searcher: {{name: single, metric: loss, max_length: 1}}
max_restarts: 0
"""
SCRIPT = """
import os
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.25})
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "state").write_text("one step")
        print("trained as", os.getuid(), "in", open("/proc/1/cmdline").read().split("\\0")[2], flush=True)
        op.report_completed(0.25)
"""


FAILS = """
import os, pathlib
pathlib.Path("out").mkdir()
pathlib.Path("out/batch.txt").write_text("17 17 17")
os.abort()
"""


@dataclass(frozen=True)
class _Serving:
    """A cluster whose pool is two slots of a Podman."""

    cluster: EmbeddedCluster
    podman: Podman
    storage: Path
    """The directory for its checkpoints."""
    up: Callable[[], object]
    """Starts it."""


@contextmanager
def _serving(folder: Path) -> Iterator[_Serving]:
    home, storage = folder / "home", folder / "storage"
    storage.mkdir()
    # The trial is another user in its container.
    storage.chmod(0o777)
    home.mkdir(mode=0o700)
    with podman_service(folder) as podman, podman.serving():
        port = free_port()
        told = SETTINGS.format(
            image=IMAGE,
            url=podman.url,
            address=f"{podman.host}:{port}",
            certificate=home / "data/tls/certificate.pem",
            storage=storage,
        )
        (home / FILE_NAME).write_text(told)
        cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
        remote = ("--host", podman.host, "--remote-port", str(port), "--tls-self-signed")
        up = partial(cluster.run, "resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
        up()
        try:
            yield _Serving(cluster, podman.podman, storage, up)
        finally:
            cluster.down()


def _submit(cluster: EmbeddedCluster, folder: Path, *, script: str, config: str) -> str:
    folder.mkdir()
    (folder / "train.py").write_text(script)
    (folder / "boxed.yaml").write_text(config)
    created = cluster.det("e", "create", "boxed.yaml", ".", cwd=folder)
    return created.stdout + created.stderr


def test_trial_runs_in_a_container_and_its_lines_metrics_checkpoint_and_end_arrive(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        cluster, podman, storage = served.cluster, served.podman, served.storage
        said = _submit(cluster, tmp_path / "project", script=SCRIPT, config=CONFIG.format(storage=storage))
        assert "shm_size" not in said
        cluster.det("e", "wait", "1", timeout=SECONDS)
        assert "trained as 10001 in" in cluster.det("t", "logs", "1").stdout
        (listed,) = cluster.json("e", "list-checkpoints", "1")
        uuid = listed["uuid"]
        assert (storage / uuid / "state").read_text() == "one step"
        with cluster.client() as client:
            (best,) = client.get_experiment(1).list_checkpoints()
            assert best.uuid == uuid
            (report,) = client.get_trial(1).iter_metrics("validation")
            assert (report.steps_completed, report.metrics) == (1, {"loss": 0.25})
        (described,) = cluster.json("t", "describe", "1")
        assert [run["outcome"] for run in described["trial"]["runs"]] == ["COMPLETED"]
        _until_all_is_removed(cluster, podman)


def test_the_container_and_the_files_of_a_failed_run_stay_and_its_slots_do_not(tmp_path: Path) -> None:
    with _serving(tmp_path) as served:
        cluster, podman, storage = served.cluster, served.podman, served.storage
        held = CONFIG.format(storage=storage) + "on_failure: {hold: 3600}\n"
        assert "on_failure" not in _submit(cluster, tmp_path / "project", script=FAILS, config=held)
        cluster.det("e", "wait", "1", check=False, timeout=SECONDS)
        _until_held(cluster)
        (listed,) = cluster.json("t", "files", "1", "0/work/out")
        assert listed == {"path": "0/work/out/batch.txt", "size": 8}
        name = podman.run("ps", "--all", "--quiet", "--filter", "status=exited", "--filter", _label(cluster))
        assert len(name.split()) == 1
        # The same after the control plane was started again, while both slots train something else.
        cluster.kill()
        served.up()
        whole = CONFIG.format(storage=storage).replace("resources: {", "resources: {slots_per_trial: 2, ")
        _submit(cluster, tmp_path / "next", script="print('on both slots')", config=whole)
        cluster.det("e", "wait", "2", timeout=SECONDS)
        assert "on both slots" in cluster.det("t", "logs", "2").stdout
        _until_held(cluster)
        fetched = tmp_path / "fetched"
        cluster.det("t", "files", "1", "0/work/out", "-o", str(fetched))
        assert (fetched / "0/work/out/batch.txt").read_text() == "17 17 17"
        cluster.det("e", "delete", "1", "--yes")
        _until_all_is_removed(cluster, podman)


def _until_held(cluster: EmbeddedCluster) -> None:
    wait_until(
        lambda: not cluster.det("t", "files", "1", check=False).returncode, what="the hold", seconds=SECONDS
    )


def _until_all_is_removed(cluster: EmbeddedCluster, podman: Podman) -> None:
    label = _label(cluster)
    wait_until(lambda: not _names(podman, label), what="everything to be removed", seconds=SECONDS)


def _label(cluster: EmbeddedCluster) -> str:
    return f"label=resolute.cluster={cluster.json('master', 'info')['cluster_id']}"


def _names(podman: Podman, label: str) -> list[str]:
    """Containers and volumes of a cluster's runs."""
    has = ("--quiet", "--filter", label)
    return [*podman.run("ps", "--all", *has).split(), *podman.run("volume", "ls", *has).split()]
