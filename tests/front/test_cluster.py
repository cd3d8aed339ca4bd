"""A cluster behind a proxy: commands work by its one address, also when the cluster is killed in between."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from front.proxies import KINDS, Proxy, proxy
from support.clusters.embedded import EmbeddedCluster
from support.ports import free_port
from support.services.gateway import need_http
from support.waiting import wait_until

need_http()
STEPS = 30
TRAIN = f"""
import pathlib, time
from resolute import core

go_on = pathlib.Path(__GO_ON__)
with core.init() as context:
    for operation in context.searcher.operations():
        for step in range(1, {STEPS} + 1):
            context.train.report_training_metrics(steps_completed=step, metrics={{"loss": 1.0 / step}})
            print(f"step {{step}}", flush=True)
            while step == {STEPS // 2} and not go_on.exists():
                time.sleep(0.05)
        with context.checkpoint.store_path({{"steps_completed": {STEPS}}}) as (path, uuid):
            (path / "weights").write_text("weights")
        context.train.report_validation_metrics(steps_completed={STEPS}, metrics={{"loss": 0.1}})
        operation.report_completed(0.1)
"""
CONFIG = {
    "name": "front",
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": STEPS},
    "max_restarts": 0,
}


@dataclass(frozen=True)
class ClusterBehindProxy:
    """A cluster, and the commands of a user who knows the proxy's address alone."""

    cluster: EmbeddedCluster
    proxy: Proxy
    user: EmbeddedCluster

    def det(self, *arguments: str, **options: Any) -> str:
        """Runs a command; returns what it printed."""
        return self.user.det(*arguments, **options).stdout


@contextmanager
def cluster_behind(kind: str, folder: Path) -> Iterator[ClusterBehindProxy]:
    """Starts a cluster and a proxy in front of it."""
    (folder / "proxy").mkdir()
    port = free_port()
    cluster = EmbeddedCluster(
        folder / "home",
        slots=1,
        environment={"RESOLUTE_NO_HTTP": "", "RESOLUTE_GRPC_ADDRESS": f"localhost:{port}"},
    )
    cluster.up()
    try:
        status = json.loads(cluster.run("resolute", "status", "--json").stdout)
        http_port = int(status["http_url"].rpartition(":")[2])
        grpc_port = int(
            json.loads((cluster.home / "endpoint.json").read_text())["address"].rpartition(":")[2]
        )
        with proxy(
            kind, folder / "proxy", grpc_port=grpc_port, http_ports=(http_port, http_port), port=port
        ) as running:
            environment = {
                "RESOLUTE_MASTER": running.url,
                "RESOLUTE_TOKEN": (cluster.home / "token").read_text(),
                "DET_MASTER_CERT_FILE": str(running.authority),
            }
            yield ClusterBehindProxy(
                cluster, running, EmbeddedCluster(folder / "nobody", environment=environment)
            )
    finally:
        cluster.down()


@pytest.mark.e2e
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_followed_by_one_address_though_the_cluster_is_killed(kind: str, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN.replace("__GO_ON__", repr(str(go_on))))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    with cluster_behind(kind, tmp_path) as front:
        assert "admin" in front.det("user", "list")
        front.det("e", "create", str(tmp_path / "config.yaml"), str(code))
        followed: list[str] = []

        def follow() -> None:
            done = front.user.det("e", "logs", "--follow", "1", timeout=240, check=False)
            followed.append(done.stdout + done.stderr)

        following = threading.Thread(target=follow)
        following.start()
        try:
            wait_until(
                lambda: f"step {STEPS // 2}" in front.det("e", "logs", "1", check=False),
                what="half of the training",
            )
            front.cluster.kill()
            front.cluster.up()
        finally:
            go_on.touch()
        following.join(240)
        steps = [int(n) for n in re.findall(r"step (\d+)", followed[0])]
        assert steps == [*range(1, STEPS + 1)], followed[0][-2000:]
        front.det("e", "wait", "1", timeout=120)
        assert "COMPLETED" in front.det("e", "describe", "1")
        (checkpoint,) = json.loads(front.det("e", "list-checkpoints", "1", "--json"))
        front.det("checkpoint", "download", checkpoint["uuid"], "-o", str(tmp_path / "fetched"))
        assert (tmp_path / "fetched/weights").read_text() == "weights"
