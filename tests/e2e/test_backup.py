"""A backup of a cluster that runs becomes another cluster that knows the same and continues."""

from __future__ import annotations

from pathlib import Path

from support.clusters.embedded import EmbeddedCluster, embedded

CONFIG = "entrypoint: python3 train.py\nsearcher: {name: single, metric: loss, max_length: 2}\n"
SCRIPT = """
import determined as det

with det.core.init() as core:
    for op in core.searcher.operations():
        core.train.report_validation_metrics(steps_completed=op.length, metrics={"loss": 0.25})
        op.report_completed(0.25)
"""


def submit_and_wait(cluster: EmbeddedCluster, folder: Path, number: int) -> None:
    cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    cluster.det("e", "wait", str(number), timeout=120)


def test_backup_restores_to_a_cluster_that_goes_on(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "config.yaml").write_text(CONFIG)
    (project / "train.py").write_text(SCRIPT)
    with embedded(tmp_path / "home", slots=1) as cluster:
        submit_and_wait(cluster, project, 1)
        cluster.run("resolute", "backup", str(tmp_path / "backup"))
        assert (
            "exists already"
            in cluster.run("resolute", "backup", str(tmp_path / "backup"), check=False).stderr
        )
        assert "serves" in cluster.run("resolute", "db", "upgrade", check=False).stderr
        original = cluster.json("e", "describe", "1")[0]["experiment"]["uuid"]
        assert "not empty" in cluster.run("resolute", "restore", str(tmp_path / "backup"), check=False).stderr
    restored = EmbeddedCluster(tmp_path / "other-home", slots=1)
    restored.run("resolute", "restore", str(tmp_path / "backup"))
    restored.run("resolute", "db", "upgrade")
    with embedded(restored.home, slots=1) as cluster:
        assert cluster.json("e", "describe", "1")[0]["experiment"]["uuid"] == original
        assert cluster.json("t", "describe", "1", "--metrics")[0]["metrics"][0]["metrics"] == {"loss": 0.25}
        submit_and_wait(cluster, project, 2)
