"""A whole cluster whose trials are containers of a real Podman, which reach it by TLS."""

from __future__ import annotations

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


def test_trial_runs_in_a_container_and_its_lines_metrics_checkpoint_and_end_arrive(tmp_path: Path) -> None:
    project, home, storage = tmp_path / "project", tmp_path / "home", tmp_path / "storage"
    project.mkdir()
    storage.mkdir()
    # The trial is another user in its container.
    storage.chmod(0o777)
    home.mkdir(mode=0o700)
    (project / "train.py").write_text(SCRIPT)
    (project / "boxed.yaml").write_text(CONFIG.format(storage=storage))
    with podman_service(tmp_path) as podman, podman.serving():
        port = free_port()
        certificate = home / "data/tls/certificate.pem"
        told = SETTINGS.format(
            image=IMAGE,
            url=podman.url,
            address=f"{podman.host}:{port}",
            certificate=certificate,
            storage=storage,
        )
        (home / FILE_NAME).write_text(told)
        cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
        remote = ("--host", podman.host, "--remote-port", str(port), "--tls-self-signed")
        cluster.run("resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
        try:
            created = cluster.det("e", "create", "boxed.yaml", ".", cwd=project)
            assert "shm_size" not in created.stdout + created.stderr
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
            mine = cluster.json("master", "info")["cluster_id"]
            wait_until(
                lambda: not _names(podman.podman, mine), what="everything to be removed", seconds=SECONDS
            )
        finally:
            cluster.down()


def _names(podman: Podman, cluster_id: str) -> list[str]:
    """Containers and volumes of a cluster's runs."""
    label = ("--quiet", "--filter", f"label=resolute.cluster={cluster_id}")
    return [*podman.run("ps", "--all", *label).split(), *podman.run("volume", "ls", *label).split()]
