"""A slot that is disabled gets no new run; what runs there goes on elsewhere, or to its end with --drain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

CONFIG = """
name: long
entrypoint: python3 train.py
environment: {{environment_variables: ["MAY_END={may_end}"]}}
searcher: {{name: single, metric: loss, max_length: 1}}
"""
SCRIPT = """
import os, sys, time
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        while not os.path.exists(os.environ["MAY_END"]):
            time.sleep(0.02)
            if core.preempt.should_preempt():
                with core.checkpoint.store_path({"steps_completed": 0}) as (path, _):
                    (path / "state").write_text("nothing")
                sys.exit(0)
        op.report_completed(1.0)
"""


def run(cluster: EmbeddedCluster, experiment: int) -> dict[str, Any]:
    """What is told of the latest run of an experiment's trial, with its number among the trial's."""
    (described,) = cluster.json("t", "describe", str(experiment))
    runs = described["trial"]["runs"]
    return {**runs[-1], "count": len(runs)} if runs else {}


def running_on(cluster: EmbeddedCluster, slot: int) -> int | None:
    """The trial that holds a slot and trains."""
    held = {one["slot_id"]: one["trial_id"] for one in cluster.json("slot", "list")}
    return held[slot] or None


def test_trials_leave_disabled_slots_and_wait_for_enabled_ones(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / "long.yaml").write_text(CONFIG.format(may_end=tmp_path / "may-end"))
    with embedded(tmp_path / "home", slots=2) as cluster:
        cluster.det("e", "create", "long.yaml", ".", cwd=project)
        wait_until(lambda: running_on(cluster, 0) == 1, what="the trial to run on the first slot")
        shown = cluster.det("slot", "disable", "0", "0").stdout.splitlines()
        assert dict(zip(*map(str.split, shown), strict=False))["Enabled"] == "no"
        wait_until(lambda: running_on(cluster, 1) == 1, what="the trial to go on, on the other slot")
        cluster.det("agent", "disable", "0", "--drain")
        assert cluster.json("agent", "list")[0]["slots_disabled"] == 2
        assert cluster.json("agent", "list")[0]["draining"]
        cluster.det("e", "create", "long.yaml", ".", cwd=project)
        waits = "needs 1 slot, 0 of 0 are free (2 more are disabled)"
        wait_until(
            lambda: [one["explanation"] for one in cluster.json("e", "list") if one["id"] == 2] == [waits],
            what="a reason to wait",
        )
        assert "slot 1 (cpu): trial 1, disabled" in cluster.run("resolute", "status").stdout
        (tmp_path / "may-end").touch()
        cluster.det("e", "wait", "1", timeout=120)
        assert run(cluster, 1)["count"] == 2, "draining left the second run alone"
        assert run(cluster, 1)["outcome"] == "COMPLETED"
        assert [one["state"] for one in cluster.json("e", "list") if one["id"] == 2] == ["ACTIVE"]
        cluster.det("agent", "enable", "--all")
        cluster.det("e", "wait", "2", timeout=120)
