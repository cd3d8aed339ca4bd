"""While trials run, checkpoints that lost their place go; a small disk is enough for any number of them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.file_systems import small_file_system
from support.object_stores.servers import KINDS, object_server
from support.waiting import wait_until

COMMITS = int(os.environ.get("RESOLUTE_RETENTION_COMMITS", "25"))
"""``make retention`` commits a thousand on the small disk."""
SCRIPT = """
import math
import pathlib
import determined as det

info = det.get_cluster_info()
marks = pathlib.Path(info.trial.hparams["marks"])
LOSSES = [0.5, math.nan, 0.1, 0.3, 0.1, 0.4]
with det.core.init() as core:
    for step in range(1, info.trial.hparams["commits"] + 1):
        loss = LOSSES[(step - 1) % len(LOSSES)]
        core.train.report_validation_metrics(steps_completed=step, metrics={"loss": loss})
        with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "step").write_text(str(step))
            (path / "weights").write_bytes(bytes([step % 256]) * info.trial.hparams["bytes"])
        if step >= info.trial.hparams["commits"]:
            (marks / "written").touch()
            while not (marks / "end").exists():
                if core.preempt.should_preempt():
                    break
"""


def submit(cluster: EmbeddedCluster, folder: Path, *, storage: object, commits: int, size: int) -> int:
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    config = {
        "name": "kept",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {"marks": str(folder), "commits": commits, "bytes": size},
        "checkpoint_storage": storage,
        "max_restarts": 0,
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    created = cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    return int(created.stdout.split("experiment ")[1].split()[0])


def kept(cluster: EmbeddedCluster, experiment: int) -> dict[int, list[str]]:
    """Reasons by steps, of the checkpoints that can be read."""
    found = cluster.json("e", "list-checkpoints", str(experiment))
    return {
        each["steps_completed"]: sorted(each["keep_reasons"])
        for each in found
        if each["state"] == "COMPLETED"
    }


def test_a_running_trial_keeps_the_best_the_latest_and_milestones(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    project, store = tmp_path / "project", cluster.home / "checkpoints" / "milestones"
    storage = {
        "type": "shared_fs",
        "host_path": str(cluster.home / "checkpoints"),
        "storage_path": "milestones",
        "save_experiment_best": 1,
        "keep_every": {"batches": 5},
    }
    number = submit(cluster, project, storage=storage, commits=8, size=10)
    wait_until((project / "written").exists, what="the last checkpoint to be written")
    # Of two equal values the earlier is the better; what is NaN has no rank.
    expected = {
        3: ["experiment_best", "trial_best"],
        5: ["milestone"],
        8: ["restorable", "trial_latest"],
    }
    wait_until(lambda: kept(cluster, number) == expected, what="the others to lose their places")
    wait_until(
        lambda: sorted(int(path.read_text()) for path in store.glob("*/step")) == [3, 5, 8],
        what="the others' files to go",
    )
    shown = cluster.run("resolute", "e", "describe", str(number)).stdout
    assert "best of the experiment, best of the trial" in shown
    assert "milestone" in shown
    (project / "end").touch()
    cluster.det("e", "wait", str(number))
    assert sorted(kept(cluster, number)) == [3, 5, 8]


@pytest.mark.timeout(60 + 10 * COMMITS)
def test_a_disk_with_room_for_four_is_enough_for_any_number(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    size = 1 << 20
    (cluster.home / "checkpoints").mkdir(exist_ok=True)
    with small_file_system(cluster.home / "checkpoints" / "small", str(4 * size + (256 << 10))) as disk:
        storage = {"type": "shared_fs", "host_path": str(disk)}
        project = tmp_path / "project"
        number = submit(cluster, project, storage=storage, commits=COMMITS, size=size)
        (project / "end").touch()
        waited = cluster.det("e", "wait", str(number), check=False, timeout=300 + 5 * COMMITS)
        assert waited.returncode == 0, cluster.det("trial", "logs", "1").stdout[-3000:]
        assert sorted(kept(cluster, number)) == [3, COMMITS]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_due_goes_after_the_service_was_killed_and_its_store_was_away(
    kind: str, tmp_path: Path
) -> None:
    with object_server(kind, tmp_path / kind, lasting=True) as server:
        bucket = server.new_bucket()
        with embedded(tmp_path / "home", slots=2, **server.variables()) as cluster:
            project = tmp_path / "project"
            storage = server.section(bucket)
            number = submit(cluster, project, storage=storage, commits=9, size=10)
            wait_until(lambda: len(kept(cluster, number)) >= 2, what="checkpoints to be written")
            cluster.kill()
            cluster.up()
            wait_until((project / "written").exists, what="the last checkpoint to be written")
            wait_until(
                lambda: sorted(kept(cluster, number)) == [3, 9], what="the others to lose their places"
            )

            def stored() -> set[str]:
                return {name.split("/")[-2] for name in server.objects(bucket) if name.endswith("/step")}

            wait_until(lambda: len(stored()) == 2, what="the others' objects to go")
            (project / "end").touch()
            cluster.det("e", "wait", str(number))
