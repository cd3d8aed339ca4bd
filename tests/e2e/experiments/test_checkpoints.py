"""Checkpoints of an experiment in a bucket: no secret in its trials, and at its end only what it keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.object_stores.servers import KINDS, ObjectServer, object_server
from support.waiting import wait_until

SCRIPT = """
import os
import determined as det

LOSSES = {1: 0.5, 2: 0.1, 3: 0.3, 4: 0.2, 5: 0.4}
info = det.get_cluster_info()
with det.core.init() as core:
    for op in core.searcher.operations():
        for step in range(1, op.length + 1):
            core.train.report_validation_metrics(steps_completed=step, metrics={"loss": LOSSES[step]})
            with core.checkpoint.store_path({"steps_completed": step}) as (path, _):
                (path / "step").write_text(str(step))
                (path / "environment").write_text(repr(dict(os.environ)) + repr(info.trial._config))
        op.report_completed(LOSSES[op.length])
"""
CONFIG = """
name: {name}
entrypoint: python3 train.py
searcher: {{name: single, metric: loss, max_length: 5}}
checkpoint_storage:
  {storage}
"""


def submit(cluster: EmbeddedCluster, folder: Path, *, storage: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "config.yaml").write_text(CONFIG.format(name="kept", storage=storage))
    said = cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    number = said.stdout.split("experiment ")[1].split()[0]
    cluster.det("e", "wait", number, timeout=120)
    return said.stdout + said.stderr


def kept(cluster: EmbeddedCluster, experiment: int) -> dict[int, str]:
    found = cluster.json("e", "list-checkpoints", str(experiment))
    return {each["steps_completed"]: each["uuid"] for each in found if each["state"] == "COMPLETED"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
def test_a_bucket_keeps_the_best_and_the_latest_and_trials_hold_no_secret(kind: str, tmp_path: Path) -> None:
    with object_server(kind, tmp_path / kind) as server:
        bucket = server.new_bucket()
        with embedded(tmp_path / "home", slots=2, **server.variables()) as cluster:
            section = server.section(bucket)
            said = submit(cluster, tmp_path / "project", storage=json.dumps(section))
            for name in {"secret_key", "connection_string"} & section.keys():
                assert f"checkpoint_storage.{name} has no effect" in said
            checkpoints = kept(cluster, 1)
            assert sorted(checkpoints) == [2, 5]
            wait_until(lambda: len(stored(server, bucket)) == 2, what="the others' objects to go")
            assert stored(server, bucket) == set(checkpoints.values())
            # Not the other one: whoever verifies a checkpoint keeps it from policies for a while.
            cluster.det("checkpoint", "verify", checkpoints[2])
            collect = ("checkpoint", "gc", "1", "--save-trial-best", "1", "--save-trial-latest", "0")
            foreseen = cluster.det(*collect, "--dry-run")
            assert (foreseen.stdout.split(), sorted(kept(cluster, 1))) == ([checkpoints[5]], [2, 5])
            cluster.det("checkpoint", "pin", checkpoints[5])
            assert cluster.det(*collect, "--yes").stdout == ""
            cluster.det("checkpoint", "unpin", checkpoints[5])
            assert cluster.det(*collect, "--yes").stdout.split() == [checkpoints[5]]
            assert sorted(kept(cluster, 1)) == [2]
            cluster.det("checkpoint", "download", checkpoints[2], "-o", str(tmp_path / "best"))
            assert (tmp_path / "best" / "step").read_text() == "2"
            assert server.secret not in (tmp_path / "best" / "environment").read_text()
            for mode in ("direct", "master"):
                target = tmp_path / mode
                cluster.det("checkpoint", "download", checkpoints[2], "-o", str(target), "--mode", mode)
                assert (target / "step").read_text() == "2"
            store = ("--bucket", bucket, "--type", kind, "--endpoint-url", section.get("endpoint_url", ""))
            # The config of an experiment may name any bucket; to test one, the operator must have listed it.
            refused = cluster.run("resolute", "storage", "doctor", *store, check=False)
            assert (refused.returncode, "RESOLUTE_CHECKPOINTS_BUCKETS" in refused.stderr) == (1, True)
            assert stored(server, bucket) == {checkpoints[2]}
            runs = (tmp_path / "home" / "runs").rglob("*")
            for path in runs:
                if path.is_file():
                    assert server.secret.encode() not in path.read_bytes(), path


def stored(server: ObjectServer, bucket: str) -> set[str]:
    """Identifiers of the checkpoints that have an object of their own: what did not change is shared."""
    names = [name.split("/") for name in server.objects(bucket)]
    return {name[-2] for name in names if name[-1] == "step"}


@pytest.mark.parametrize(("best", "steps"), [(0, []), (3, [2, 3, 4])])
def test_a_directory_keeps_what_the_config_says(
    cluster: EmbeddedCluster, tmp_path: Path, best: int, steps: list[int]
) -> None:
    storage = (
        f"{{type: shared_fs, host_path: {tmp_path}, storage_path: kept, save_experiment_best: {best}, "
        "save_trial_best: 0, save_trial_latest: 0}"
    )
    said = submit(cluster, tmp_path / "project", storage=storage)
    number = int(said.split("experiment ")[1].split()[0])
    # Reports that are late, or a checkpoint that is being read, put off what goes at the end.
    wait_until(lambda: sorted(kept(cluster, number)) == steps, what="the others to be given up")
    kept_ids = set(kept(cluster, number).values())
    wait_until(
        lambda: {path.parent.name for path in (tmp_path / "kept").glob("*/step")} == kept_ids,
        what="the others' directories to go",
    )
