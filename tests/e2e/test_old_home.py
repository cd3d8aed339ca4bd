"""A home of before 0.1.0 starts after `resolute db upgrade`, with all that it held."""

from __future__ import annotations

from pathlib import Path

from support.clusters.embedded import EmbeddedCluster, embedded
from support.old_home import restore_home


def test_an_old_home_starts_after_the_upgrade_and_lists_what_it_held(tmp_path: Path) -> None:
    home = tmp_path / "home"
    restore_home(home)
    EmbeddedCluster(home).run("resolute", "db", "upgrade", timeout=90)
    with embedded(home) as cluster:
        experiments = {one["name"]: one for one in cluster.json("e", "list")}
        assert experiments["before-grid"]["state"] == "COMPLETED"
        assert experiments["before-asha"]["state"] == "PAUSED"
        trials = [one["trial"]["state"] for one in cluster.json("e", "list-trials", "1")]
        assert trials == ["COMPLETED", "COMPLETED"]
        assert len(cluster.json("e", "list-trials", "2")) >= 2
        assert len(cluster.json("e", "list-checkpoints", "1")) == 2
        described = cluster.det("trial", "describe", "1", "--metrics").stdout
        assert "loss" in described
        assert "at step 3" in cluster.det("trial", "logs", "1").stdout
        assert cluster.run("resolute", "search", "replay", "2").returncode == 0
