"""A trial that its search lets go on at once does so in the process that it has, warm or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster

SCRIPT = """
import os
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        print("length", op.length, "in process", os.getpid(), flush=True)
        core.train.report_validation_metrics(op.length, {"loss": 1 / op.length})
        op.report_completed(1 / op.length)
"""
# The first trial of a search that stops trials is among the best on every rung.
CONFIG = """
name: going-on
entrypoint: python3 train.py
hyperparameters: {lr: {type: double, minval: 0.1, maxval: 0.2}}
searcher:
  {name: async_halving, metric: loss, max_length: {batches: 16}, num_rungs: 3, divisor: 4, max_trials: 1,
   stop_once: true}
environment: {warm_start: WARM}
"""


@pytest.mark.parametrize("warm", ["false", "auto"], ids=["cold", "warm"])
def test_a_trial_that_goes_on_at_once_keeps_its_process(
    cluster: EmbeddedCluster, tmp_path: Path, warm: str
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("WARM", warm))
    cluster.det("e", "create", "config.yaml", ".", "-f", cwd=tmp_path, timeout=120)
    number = str(cluster.json("e", "list", "--all")[0]["id"])
    (listed,) = cluster.json("e", "list-trials", number)
    trial = str(listed["id"])
    lines = cluster.det("t", "logs", trial).stdout.splitlines()
    told = [line.partition("length ")[2].split() for line in lines if "in process" in line]
    assert [words[0] for words in told] == ["1", "4", "16"]
    assert len({words[-1] for words in told}) == 1, told
    forked = [line for line in lines if "warm start: this experiment's runs are forks" in line]
    assert len(forked) == (warm == "auto")
    (described,) = cluster.json("t", "describe", trial)
    assert [run["outcome"] for run in described["trial"]["runs"]] == ["COMPLETED"]
