"""A cluster of an older version is replaced by this one while its trials run, and they go on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.clusters.embedded import EmbeddedCluster
from support.history.old_version import CHECKOUT, has_revision, install
from support.waiting import wait_until

VERSIONS = {
    "v0.1.0": "01d7f46cb981eabeeb47e21c2c65b58b09798dc1",
    "eba3d54b": "eba3d54bd4b1ab0f3e28a06285acf31be5c14e78",
}
"""Commits of older versions."""
CODE = Path(__file__).parents[2] / "fixtures" / "homes" / "code"
STEPS = 40
CONFIG = {
    "name": "replaced",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"x": {"type": "categorical", "vals": [1, 2, 3]}, "pause": 0.3},
    "searcher": {"name": "grid", "metric": "loss", "max_length": STEPS},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_trials_go_on_when_the_new_version_is_installed_under_them(tmp_path: Path, version: str) -> None:
    revision = VERSIONS[version]
    if not has_revision(revision):
        pytest.skip(f"the history of this checkout has no commit {revision}, version {version}")
    installation = install(revision, tmp_path / "installation")
    config = tmp_path / "replaced.yaml"
    config.write_text(json.dumps(CONFIG))
    cluster = EmbeddedCluster(tmp_path / "home", bin=installation.bin)
    cluster.up()
    try:
        cluster.run("resolute", "experiment", "create", str(config), str(CODE))
        wait_until(
            lambda: all("at step 3" in logs(cluster, number) for number in (1, 2)), what="steps", seconds=240
        )
        cluster.kill()
        installation.use(CHECKOUT)
        cluster.run("resolute", "db", "upgrade", timeout=120)
        cluster.up()
        client = cluster.client()
        experiment = client.get_experiment(1)
        assert experiment.wait(interval=0.5).name == "COMPLETED"
        trials = experiment.list_trials()
        assert len(trials) == 3
        for trial in trials:
            reports = list(trial.iter_metrics("training"))
            assert [one.steps_completed for one in reports] == list(range(1, STEPS + 1))
            assert [run["run"] for run in runs(cluster, trial.id)] == [1]
    finally:
        cluster.down()


def logs(cluster: EmbeddedCluster, trial: int) -> str:
    return cluster.run("resolute", "trial", "logs", str(trial), check=False).stdout


def runs(cluster: EmbeddedCluster, trial: int) -> list[dict[str, int]]:
    (described,) = json.loads(cluster.run("resolute", "trial", "describe", str(trial), "--json").stdout)
    found: list[dict[str, int]] = described["trial"]["runs"]
    return found
