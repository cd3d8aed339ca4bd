"""Restored and copied clusters go on by themselves, and leave the original's trials and checkpoints alone."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

CONFIG = """
entrypoint: python3 train.py
searcher: {{name: single, metric: loss, max_length: 4}}
environment: {{environment_variables: ["MAY_END={may_end}"]}}
checkpoint_storage: {{save_experiment_best: 0, save_trial_best: 0, save_trial_latest: 0}}
"""
SCRIPT = """
import json, os, time
import determined as det

info = det.get_cluster_info()
with det.core.init() as core:
    step = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            step = json.loads((path / "step").read_text())
    print(f"training begins at step {step}", flush=True)
    for op in core.searcher.operations():
        while step < op.length:
            while step == 3 and not os.path.exists(os.environ["MAY_END"] + info.cluster_id):
                time.sleep(0.02)
            step += 1
            if step == 3:
                with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step").write_text(json.dumps(step))
        core.train.report_validation_metrics(steps_completed=step, metrics={"loss": 0.25})
        op.report_completed(0.25)
"""


@dataclass(frozen=True)
class Original:
    """A cluster with a trial that has stored a checkpoint and waits."""

    cluster: EmbeddedCluster
    checkpoint: Path
    """Where the checkpoint lies."""
    may_end: str
    """Begins the names of the files that let the trials of clusters end."""

    @property
    def pid(self) -> int:
        """The process of the trial."""
        return int(query(self.cluster, "experiments", "SELECT pid FROM containers")[0])

    def let_end(self, cluster: EmbeddedCluster) -> None:
        """Lets the trials of a cluster end."""
        cluster_id = json.loads((cluster.home / "cluster.json").read_text())["cluster_id"]
        Path(f"{self.may_end}{cluster_id}").touch()


def query(cluster: EmbeddedCluster, service: str, sql: str) -> list[str]:
    """The first column of what a database of a cluster answers, as text."""
    path = cluster.home / "databases" / f"{service}.sqlite"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return [str(row[0]) for row in connection.execute(sql).fetchall()]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    folder = tmp_path_factory.mktemp("original")
    project = folder / "project"
    project.mkdir()
    may_end = f"{folder}/may-end-"
    (project / "config.yaml").write_text(CONFIG.format(may_end=may_end))
    (project / "train.py").write_text(SCRIPT)
    with embedded(folder / "home", slots=1) as cluster:
        cluster.det("e", "create", "config.yaml", ".", cwd=project)
        stored = "SELECT checkpoint_id FROM checkpoints WHERE state = 'completed'"
        wait_until(lambda: query(cluster, "checkpoints", stored), what="a checkpoint")
        (checkpoint,) = query(cluster, "checkpoints", stored)
        place = cluster.home / "checkpoints" / checkpoint
        known = Original(cluster, place, may_end)
        try:
            yield known
        finally:
            known.let_end(cluster)


def assert_it_goes_on_alone(cluster: EmbeddedCluster, original: Original) -> None:
    """The trial continues from its checkpoint as its second run; what is the original's is still there."""
    number = "SELECT count(*) FROM runs WHERE outcome = 'UNSPECIFIED' AND run = 2"
    wait_until(lambda: query(cluster, "experiments", number) == ["1"], what="the second run")
    original.let_end(cluster)
    cluster.det("e", "wait", "1", timeout=120)
    outcomes = query(cluster, "experiments", "SELECT outcome FROM runs ORDER BY run")
    assert outcomes == ["LOST", "COMPLETED"]
    assert query(cluster, "experiments", "SELECT restarts FROM trials") == ["0"]
    assert "training begins at step 3" in cluster.det("trial", "logs", "1").stdout
    assert (original.checkpoint / "step").read_text() == "3"
    listed = cluster.run("resolute", "e", "list-checkpoints", "1")
    assert "(inherited)" in listed.stdout
    assert "take-over" in listed.stderr
    assert Path(f"/proc/{original.pid}").exists(), "the trial of the original goes on"


@pytest.mark.sampled(1, group="copies of a cluster")
def test_a_restored_cluster_goes_on_and_leaves_the_original_alone(original: Original, tmp_path: Path) -> None:
    backup, cluster = tmp_path / "backup", original.cluster
    cluster.run("resolute", "backup", str(backup))
    assert "exists already" in cluster.run("resolute", "backup", str(backup), check=False).stderr
    assert "not empty" in cluster.run("resolute", "restore", str(backup), check=False).stderr
    restored = EmbeddedCluster(tmp_path / "restored", slots=1)
    restored.run("resolute", "restore", str(backup))
    with embedded(restored.home, slots=1):
        assert_it_goes_on_alone(restored, original)


@pytest.mark.sampled(1, group="copies of a cluster")
def test_a_copied_home_is_refused_and_goes_on_alone_once_it_is_adopted(
    original: Original, tmp_path: Path
) -> None:
    copy = EmbeddedCluster(tmp_path / "copy", slots=1)
    subprocess.run(["cp", "-a", original.cluster.home, copy.home], check=True)
    assert "adopt-copy" in copy.run("resolute", "up", check=False).stderr
    assert Path(f"/proc/{original.pid}").exists(), "the trial of the original goes on"
    copy.run("resolute", "adopt-copy")
    with embedded(copy.home, slots=1):
        assert_it_goes_on_alone(copy, original)
