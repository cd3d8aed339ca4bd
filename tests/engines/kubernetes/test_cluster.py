"""A whole cluster whose trials are Pods of a real Kubernetes, which reach it by TLS."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.backends import need_module
from support.clusters.embedded import EmbeddedCluster
from support.daemons.kubernetes import KubernetesCluster
from support.ports import free_port
from support.waiting import wait_until

from resolute_engines.settings import FILE_NAME

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

SECONDS = 240.0
CONFIG: dict[str, Any] = {
    "name": "evicted",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": 1},
    "max_restarts": 0,
}
SCRIPT = """
import os, sys, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    goes_on = info.latest_checkpoint is not None
    if goes_on:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            print("continues with", (path / "state").read_text(), flush=True)
    for op in core.searcher.operations():
        print("training in", os.environ["HOSTNAME"], flush=True)
        while not goes_on:
            time.sleep(0.05)
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": 7}) as (path, _):
                    (path / "state").write_text("seven steps")
                sys.exit(0)
        core.train.report_validation_metrics(steps_completed=8, metrics={"loss": 0.25})
        op.report_completed(0.25)
"""


@pytest.fixture
def storage() -> Iterator[Path]:
    """A directory that Pods see at the same path; not pytest's, whose parents others may not enter."""
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as directory:
        path = Path(directory)
        path.chmod(0o777)
        yield path


def test_evicted_trial_goes_on_from_its_checkpoint_in_another_pod(
    kubernetes: KubernetesCluster, tmp_path: Path, storage: Path
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    home.mkdir(mode=0o700)
    (project / "train.py").write_text(SCRIPT)
    port = free_port()
    engine = {
        **kubernetes.engine_options,
        "type": "kubernetes",
        "services_address": f"{kubernetes.host}:{port}",
        "services_certificate": str(home / "data/tls/certificate.pem"),
    }
    pool = {"pool_name": "pods", "engine": "kube", **kubernetes.pool_options}
    pool["allowed_pod_spec"] = ["spec.volumes.hostPath"]
    # JSON is YAML.
    (home / FILE_NAME).write_text(json.dumps({"resource_pools": [pool], "engines": {"kube": engine}}))
    mounted = {
        "containers": [
            {"name": "determined-container", "volumeMounts": [{"name": "store", "mountPath": str(storage)}]}
        ],
        "volumes": [{"name": "store", "hostPath": {"path": str(storage)}}],
    }
    config = {
        "checkpoint_storage": {"type": "shared_fs", "host_path": str(storage)},
        "environment": {"pod_spec": {"spec": mounted}},
    }
    (project / "evicted.yaml").write_text(json.dumps({**CONFIG, **config}))
    cluster = EmbeddedCluster(home, environment={"RESOLUTE_CHECKPOINTS_ROOTS": str(storage)})
    remote = ("--host", kubernetes.host, "--remote-port", str(port), "--tls-self-signed")
    cluster.run("resolute", "up", "--detach", "--no-http", *remote, timeout=SECONDS)
    try:
        created = cluster.det("e", "create", "evicted.yaml", ".", cwd=project)
        assert "without effect" not in created.stdout + created.stderr
        wait_until(
            lambda: "training in rank-0" in _lines(cluster),
            what="the trial",
            seconds=SECONDS,
            pause=1,
        )
        (name,) = kubernetes.pods()
        kubernetes.evict(name)
        wait_until(lambda: len(_runs(cluster)) == 2, what="another run", seconds=SECONDS, pause=1)
        cluster.det("e", "wait", "1", timeout=SECONDS)
        assert "continues with seven steps" in _lines(cluster)
        assert [each["outcome"] for each in _runs(cluster)] == ["PREEMPTED", "COMPLETED"]
        wait_until(lambda: not kubernetes.pods(), what="everything to be removed", seconds=SECONDS)
    finally:
        cluster.down()


def _lines(cluster: EmbeddedCluster) -> str:
    return cluster.det("t", "logs", "1", check=False).stdout


def _runs(cluster: EmbeddedCluster) -> list[dict[str, Any]]:
    (described,) = cluster.json("t", "describe", "1")
    runs: list[dict[str, Any]] = described["trial"]["runs"]
    return runs
