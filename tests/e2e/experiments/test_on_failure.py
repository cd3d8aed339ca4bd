"""What a failed run left stays for the time that its config says, and its slots are free meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.clusters.embedded import EmbeddedCluster, embedded
from support.waiting import wait_until

FAILS = """
import os, pathlib
pathlib.Path("out").mkdir()
pathlib.Path("out/batch.txt").write_text("17 " * int(os.environ["WORDS"]))
os.abort()
"""


def submit(cluster: EmbeddedCluster, folder: Path, *, words: int = 3, **on_failure: Any) -> int:
    folder.mkdir()
    (folder / "train.py").write_text(FAILS)
    config = {
        "name": "fails",
        "entrypoint": "python3 train.py",
        "searcher": {"name": "single", "metric": "loss"},
        "hyperparameters": {},
        "max_restarts": 0,
        "environment": {"environment_variables": [f"WORDS={words}"]},
        "on_failure": on_failure,
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    created = cluster.det("e", "create", "config.yaml", ".", cwd=folder)
    number = int(created.stdout.split("experiment ")[1].split()[0])
    cluster.det("e", "wait", str(number), check=False, timeout=120)
    return int(cluster.json("e", "list-trials", str(number))[0]["id"])


def held(cluster: EmbeddedCluster, trial: int) -> str | None:
    (described,) = cluster.json("t", "describe", str(trial))
    until = described["trial"]["runs"][-1]["hold_time"]
    return None if until is None else str(until)


def run_directories(cluster: EmbeddedCluster) -> list[Path]:
    return list((cluster.home / "runs").glob("*.1"))


def test_files_of_a_failed_run_are_held_listed_and_fetched(tmp_path: Path) -> None:
    with embedded(tmp_path / "home", slots=1) as cluster:
        trial = submit(cluster, tmp_path / "project", hold=3600)
        assert held(cluster, trial)
        listed = cluster.json("t", "files", str(trial), "0/work")
        assert {"path": "0/work/out/batch.txt", "size": 9} in listed
        everything = {file["path"] for file in cluster.json("t", "files", str(trial))}
        assert {"0/exit.json", "0/supervisor.log", "0/work/train.py"} <= everything
        assert not any("token" in path or "launch" in path for path in everything)
        # The same after the control plane was started again.
        cluster.kill()
        cluster.up()
        fetched = tmp_path / "fetched"
        said = cluster.det("t", "files", str(trial), "0/work/out", "-o", str(fetched)).stdout
        assert said == f"1 files of run 1 are in {fetched}\n"
        assert (fetched / "0/work/out/batch.txt").read_text() == "17 17 17 "
        assert cluster.det("t", "files", str(trial), "--run", "2", check=False).returncode
        # Its only slot is free: another trial runs there meanwhile.
        second = submit(cluster, tmp_path / "second", hold=1)
        assert second != trial
        wait_until(lambda: held(cluster, second) is None, what="the end of the second hold")
        wait_until(lambda: len(run_directories(cluster)) == 1, what="the removal of its directory")
        refused = cluster.det("t", "files", str(second), check=False)
        assert "are held: on_failure.hold in the config" in refused.stderr
        # What is deleted takes no space any more.
        experiment = cluster.json("t", "describe", str(trial))[0]["trial"]["experiment_id"]
        cluster.det("e", "delete", str(experiment), "--yes")
        wait_until(lambda: not run_directories(cluster), what="the removal of the first one")


def test_more_than_may_be_held_is_not(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    trial = submit(cluster, tmp_path / "project", words=100_000, hold=3600, hold_size="200 KiB")
    wait_until(lambda: held(cluster, trial) is None, what="the end of the hold")
    assert cluster.det("t", "files", str(trial), check=False).returncode
