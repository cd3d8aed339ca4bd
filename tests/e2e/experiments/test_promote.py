"""A trial goes on at its checkpoint on another cluster, where every byte of it has arrived."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.clusters.other_clusters import other_clusters, services_of
from support.waiting import wait_until

from resolute.client.schema.states import ExperimentState

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
    home = tmp_path / "other"
    with cluster.client() as here, other_clusters(home) as (other,), services_of(other) as there:
        (original,) = here.get_experiment(int(found[1])).list_trials()
        wait_until(lambda: any("starts at 0" in line for line in original.iter_logs()), what="the log here")
        token = tmp_path / "token"
        token.write_text(other.user_token())
        cluster.det("config", "set-context", "other", "--server", other.address, "--token-file", str(token))
        changed = ("--config", "searcher.max_length.batches=1", "--paused")
        command = ("promote", str(original.id), "--to", "other", *changed)
        # Repeated, it finds all of it there.
        first, again = (json.loads(cluster.det(*command, "--json", timeout=300).stdout) for _ in range(2))
        assert again == first
        copy = there.trials.get(first["trial"])
        reports = [(one.group, one.steps_completed, one.metrics) for one in there.metrics.reports(copy)]
        for group in ("training", "validation"):
            expected = [(group, one.steps_completed, one.metrics) for one in original.iter_metrics(group)]
            assert expected
            assert [one for one in reports if one[0] == group] == expected
        # The platform's own last lines may have come later.
        lines = [line.message for line in there.logs.list(copy.uuid)]
        assert any("starts at 0" in line for line in lines)
        assert {line.strip() for line in lines} <= {line.strip() for line in original.iter_logs()}
        (kept,) = original.list_checkpoints()
        assert kept.metadata["promoted_to"][first["checkpoint"]]["trial"] == first["trial"]
        moved = there.checkpoints.get(first["checkpoint"])
        assert moved.metadata["promoted_from"]["trial"] == original.id
        assert b"".join(there.checkpoints.read(moved.uuid, "data/value")) == b"6"
        going_on = there.experiments.get(first["experiment"])
        assert going_on.state is ExperimentState.PAUSED
        assert going_on.config is not None
        assert going_on.config["searcher"]["source_checkpoint_uuid"] == moved.uuid
        assert going_on.config["searcher"]["max_length"] == {"batches": 1}
        assert going_on.model_definition_size
        refused = cluster.det("promote", str(original.id), "--to", "nowhere", check=False)
        assert refused.returncode == 1
        assert "the contexts are other" in refused.stderr
