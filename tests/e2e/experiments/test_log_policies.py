"""Log policies: no restart after one line, and no second time on the node that wrote another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster, embedded

COMMON = """
hyperparameters: {}
searcher: {name: single, metric: loss, max_length: 1}
max_restarts: 3
"""
HOPELESS = """
name: hopeless
entrypoint: "echo $DET_EXPERIMENT_CONFIG; echo CUDA out of memory; echo error 42: out of patience >&2; exit 1"
log_policies:
  - {name: impatience, pattern: out of patience, action: cancel_retries}
  - {pattern: never written, action: exclude_node}
"""
BAD_NODES = """
name: bad-nodes
entrypoint: "echo the memory of this machine is broken; exit 1"
log_policies: [{pattern: memory .* broken, action: {type: exclude_node}}]
"""


def described(cluster: EmbeddedCluster, folder: Path, config: str, number: int) -> dict[str, Any]:
    (folder / "config.yaml").write_text(COMMON + config)
    cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    cluster.det("e", "wait", str(number), check=False, timeout=90)
    return dict(cluster.json("t", "describe", str(number))[0]["trial"])


def test_policies_end_restarts_and_keep_a_trial_from_nodes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with embedded(tmp_path / "home", slots=2, RESOLUTE_LOCAL_NODES="2") as cluster:
        trial = described(cluster, project, HOPELESS, 1)
        assert (trial["state"], trial["restarts"], len(trial["runs"])) == ("ERROR", 0, 1)
        log = cluster.det("t", "logs", "1").stdout
        assert "log_policies" in log.splitlines()[0], (
            "the config is printed, and its patterns match nothing there"
        )
        note, label = trial["runs"][0]["log_policies"]
        assert note == "impatience matched 'error 42: out of patience': no restart after a failure"
        assert label == "CUDA OOM matched 'CUDA out of memory'"
        assert trial["explanation"].endswith(f"; {note}; {label}")

        trial = described(cluster, project, BAD_NODES, 2)
        assert (trial["state"], trial["restarts"]) == ("ERROR", 2)
        assert trial["excluded_nodes"] == [0, 1]
        slots = [run["slot_ids"] for run in trial["runs"]]
        assert sorted(slots) == [[0], [1]], "the second run was on the other node"
        assert trial["explanation"].startswith("no machine is left for it: needs 1 slot")
