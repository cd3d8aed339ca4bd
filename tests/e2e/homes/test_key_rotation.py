"""The key that signs tokens is rotated under a running cluster: trials go on, then the old one is dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

from resolute.errors import FailedPreconditionError
from resolute_embedded.cli import rotate_key

CONFIG = """
name: waits
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
max_restarts: 0
"""
SCRIPT = """
import pathlib, time
import resolute as det
from resolute import core

with core.init() as context:
    print("trains", flush=True)
    while not pathlib.Path(%r).exists():
        time.sleep(0.05)
    for operation in context.searcher.operations():
        context.train.report_validation_metrics(1, {"loss": 1.0})
        operation.report_completed(1.0)
"""
SECONDS = 120


def rotate(cluster: EmbeddedCluster, *options: str) -> str:
    result = CliRunner().invoke(rotate_key, options, env={"RESOLUTE_HOME": str(cluster.home)})
    if result.exception is not None:
        raise result.exception
    return result.output


def test_trials_go_on_and_tokens_stay_valid_until_the_old_key_is_dropped(tmp_path: Path) -> None:
    go = tmp_path / "go"
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text(SCRIPT % str(go))
    (tmp_path / "waits.yaml").write_text(CONFIG)
    with embedded(tmp_path / "home", slots=2) as cluster:
        create = ("e", "create", str(tmp_path / "waits.yaml"), str(tmp_path / "code"))
        cluster.det(*create)
        wait_until(
            lambda: "trains" in cluster.det("t", "logs", "1", check=False).stdout,
            what="the trial",
            seconds=SECONDS,
            pause=0.5,
        )
        old = cluster.run("resolute", "token", "create", "admin").stdout.split()[-1]
        assert "a new key signs from now on" in rotate(cluster)
        cluster.det(*create)
        go.touch()
        for number in ("1", "2"):
            cluster.det("e", "wait", number, timeout=SECONDS)
        by_old = EmbeddedCluster(cluster.home, environment={**cluster.environment, "RESOLUTE_TOKEN": old})
        assert "admin" in by_old.det("user", "whoami").stdout
        new = cluster.run("resolute", "token", "create", "admin").stdout.split()[-1]
        with pytest.raises(FailedPreconditionError, match="less than two hours ago"):
            rotate(cluster, "--drop-old")
        assert "1 old key was dropped" in rotate(cluster, "--drop-old", "--now")
        wait_until(
            lambda: "was dropped; log in again" in by_old.det("user", "whoami", check=False).stderr,
            what="the end of the old key, which takes a second",
            seconds=SECONDS,
            pause=0.5,
        )
        by_new = EmbeddedCluster(cluster.home, environment={**cluster.environment, "RESOLUTE_TOKEN": new})
        assert "admin" in by_new.det("user", "whoami").stdout
