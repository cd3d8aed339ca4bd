"""A trial goes on at its checkpoint on another cluster, where every byte of it has arrived."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

CONFIG = """
name: counting
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: {batches: 2}}
hyperparameters: {step: 3}
"""
SCRIPT = """
import resolute

info = resolute.get_cluster_info()
with resolute.core.init() as context:
    value = 0
    if info.latest_checkpoint:
        with context.checkpoint.restore_path(info.latest_checkpoint) as path:
            value = int((path / "data" / "value").read_text())
    print(f"starts at {value}")
    for op in context.searcher.operations():
        for batch in range(1, op.length + 1):
            value += info.trial.hparams["step"]
            context.train.report_training_metrics(batch, {"value": value})
        context.train.report_validation_metrics(op.length, {"loss": 1 / value})
        with context.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            (path / "data").mkdir()
            (path / "data" / "value").write_text(str(value))
        op.report_completed(1 / value)
"""


@pytest.mark.sampled(1, group="trials without their cluster")
def test_a_trial_goes_on_elsewhere_and_both_sides_keep_their_history(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(SCRIPT)
    (code / "const.yaml").write_text(CONFIG)
    said = cluster.det("e", "create", "const.yaml", ".", "-f", cwd=code, timeout=300).stdout
    found = re.search(r"Created experiment (\d+)", said)
    assert found
    with cluster.client() as here, embedded(tmp_path / "other", slots=1) as other:
        (original,) = here.get_experiment(int(found[1])).list_trials()
        wait_until(lambda: any("starts at 0" in line for line in original.iter_logs()), what="the log here")
        cluster.det("config", "set-context", "other", "--home", str(other.home))
        command = ("promote", str(original.id), "--to", "other", "--config", "searcher.max_length.batches=1")
        # Repeated, it finds all of it there.
        first, again = (json.loads(cluster.det(*command, "--json", timeout=300).stdout) for _ in range(2))
        assert again == first
        other.det("e", "wait", str(first["experiment"]), timeout=300)
        with other.client() as there:
            copy = there.get_trial(first["trial"])
            for group in ("training", "validation"):
                expected = [(one.steps_completed, one.metrics) for one in original.iter_metrics(group)]
                assert expected
                assert [(one.steps_completed, one.metrics) for one in copy.iter_metrics(group)] == expected
            assert list(copy.iter_logs()) == list(original.iter_logs())
            moved = there.get_checkpoint(first["checkpoint"])
            assert moved.metadata["promoted_from"]["trial"] == original.id
            (kept,) = original.list_checkpoints()
            (known,) = kept.metadata["promoted_to"].values()
            assert known == {"trial": first["trial"], "checkpoint_id": first["checkpoint"]}
            assert moved.resources == kept.resources
            (gone_on,) = there.get_experiment(first["experiment"]).list_trials()
            wait_until(
                lambda: any("starts at 6" in line for line in gone_on.iter_logs()), what="the log there"
            )
            assert [one.metrics["value"] for one in gone_on.iter_metrics("training")] == [9]
        other.det("config", "set-context", "itself", "--home", str(other.home))
        refused = other.det("promote", str(first["trial"]), "--to", "itself", check=False)
        assert refused.returncode == 1
        assert "on that cluster already" in refused.stderr
