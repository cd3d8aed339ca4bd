"""Homes of older versions start after `resolute db upgrade`, with all that they held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.history.old_home import packed_homes, restore_home, unpack_home

from resolute.client import Determined

STATES = {
    "grid": "COMPLETED",
    "halving": "COMPLETED",
    "asha": "PAUSED",
    "optuna": "PAUSED",
    "random": "PAUSED",
    "failed": "ERROR",
    "canceled": "CANCELED",
}


def test_an_old_home_starts_after_the_upgrade_and_lists_what_it_held(tmp_path: Path) -> None:
    home = tmp_path / "home"
    restore_home(home)
    EmbeddedCluster(home).run("resolute", "db", "upgrade", timeout=90)
    with embedded(home) as cluster:
        experiments = {one["name"]: one for one in cluster.json("e", "list")}
        assert experiments["before-grid"]["state"] == "COMPLETED"
        assert experiments["before-asha"]["state"] == "PAUSED"
        trials = [one["state"] for one in cluster.json("e", "list-trials", "1")]
        assert trials == ["COMPLETED", "COMPLETED"]
        assert len(cluster.json("e", "list-trials", "2")) >= 2
        assert len(cluster.json("e", "list-checkpoints", "1")) == 2
        described = cluster.det("trial", "describe", "1", "--metrics").stdout
        assert "loss" in described
        assert "at step 3" in cluster.det("trial", "logs", "1").stdout
        assert cluster.run("resolute", "search", "replay", "2").returncode == 0


@pytest.mark.parametrize("archive", packed_homes(), ids=lambda archive: archive.name.split(".tar")[0])
def test_a_home_of_an_older_version_is_whole_and_its_paused_searches_go_on(
    tmp_path: Path, archive: Path
) -> None:
    home = tmp_path / "home"
    unpack_home(archive, home)
    EmbeddedCluster(home).run("resolute", "db", "upgrade", timeout=90)
    with embedded(home) as cluster:
        listed = cluster.json("e", "list", "--all")
        numbers = {one["name"]: str(one["id"]) for one in listed}
        assert {one["name"]: one["state"] for one in listed} == STATES
        require_accounts(cluster)
        require_records(cluster, numbers)
        for name in STATES:
            cluster.det("search", "replay", numbers[name])
        for name, state in STATES.items():
            if state == "PAUSED":
                cluster.det("e", "activate", numbers[name])
        for name, state in STATES.items():
            if state == "PAUSED":
                cluster.det("e", "wait", numbers[name], timeout=300)
        trials = cluster.json("e", "list-trials", numbers["asha"])
        assert len(trials) == 8
        assert {one["state"] for one in trials} == {"COMPLETED"}


def require_accounts(cluster: EmbeddedCluster) -> None:
    users = {one["name"]: one["active"] for one in cluster.json("user", "list", "--all")}
    assert users["ada"]
    assert not users["bob"]
    with pytest.MonkeyPatch.context() as environment:
        cluster.name_in(environment)
        assert Determined(user="ada", password="Old-password-of-ada-1").get_experiment(1).name == "grid"
    (research,) = (one for one in cluster.json("workspace", "list") if one["name"] == "research")
    assert research["quota"] == {"live_experiments": 7, "slots": 0, "storage_bytes": 100 * 1024**2}
    assert [one["name"] for one in cluster.json("project", "list", "research")] == ["vision"]
    assert "old template" in cluster.det("template", "describe", "small").stdout
    (version,) = cluster.json("model", "list-versions", "pictures")
    assert (version["name"], version["checkpoint"]["state"]) == ("first", "COMPLETED")


def require_records(cluster: EmbeddedCluster, numbers: dict[str, str]) -> None:
    client = cluster.client()
    for name, trials in (("grid", 2), ("halving", 4)):
        experiment = client.get_experiment(int(numbers[name]))
        known = experiment.list_trials()
        assert len(known) == trials
        for trial in known:
            steps = [report.steps_completed for report in trial.iter_metrics("training")]
            assert steps == list(range(1, len(steps) + 1))
            last = list(trial.iter_metrics("validation"))[-1]
            assert last.metrics["loss"] == pytest.approx(trial.hparams["x"] / last.steps_completed)
            assert f"at step {steps[-1]}\n" in "".join(trial.iter_logs())
            for checkpoint in trial.list_checkpoints():
                require_files(checkpoint, cluster.home.parent / checkpoint.uuid)
    (failed,) = client.get_experiment(int(numbers["failed"])).list_trials()
    assert "this trial is to fail" in "".join(failed.iter_logs())


def require_files(checkpoint: Any, folder: Path) -> None:
    path = Path(checkpoint.download(str(folder)))
    assert str(checkpoint.metadata["steps_completed"]) in (path / "state").read_text()
