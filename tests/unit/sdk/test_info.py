"""What a script learns of its cluster."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import resolute
from resolute import info as info_module
from resolute.errors import DataLossError
from resolute.info import ClusterInfo, RendezvousInfo, ResourcesInfo, TrialInfo
from resolute.runtime.connection import Connection


def make(**changes: Any) -> ClusterInfo:
    fields: dict[str, Any] = {
        "master_url": "http://127.0.0.1:8080",
        "cluster_id": "cluster",
        "agent_id": "agent",
        "slot_ids": [0, 1],
        "task_id": "task",
        "allocation_id": "allocation",
        "session_token": "token",
        "task_type": "TRIAL",
        "latest_checkpoint": "checkpoint",
        "trial_info": TrialInfo(
            trial_id=12,
            experiment_id=7,
            trial_seed=3,
            hparams={"lr": 0.1},
            config={"data": {"path": "/data"}},
            steps_completed=5,
            trial_run_id=2,
        ),
        "rendezvous_info": RendezvousInfo(["10.0.0.1", "10.0.0.2"], 1, [2, 2]),
        "resources_info": ResourcesInfo(["GPU-1"]),
        "connection": Connection(
            address="127.0.0.1:8080", experiment_id="e", trial_id="t", run=2, token_path="/token"
        ),
        **changes,
    }
    return ClusterInfo(**fields)


@pytest.fixture(autouse=True)
def unloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(info_module, "_info", "unloaded")
    monkeypatch.setenv("RESOLUTE_INFO_DIR", str(tmp_path))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    make().write(tmp_path)
    info = resolute.get_cluster_info()
    assert info is not None
    assert info.latest_checkpoint == "checkpoint"
    assert info.user_data == {"path": "/data"}
    assert (info.trial.trial_id, info.trial.experiment_id, info.trial.hparams) == (12, 7, {"lr": 0.1})
    assert (info.trial._steps_completed, info.trial._trial_run_id) == (5, 2)
    assert info.container_addrs == ["10.0.0.1", "10.0.0.2"]
    assert (info.container_rank, info.container_slot_counts) == (1, [2, 2])
    assert info.gpu_uuids == ["GPU-1"]
    assert info.connection == make().connection


def test_the_files_have_the_documented_names_and_keys(tmp_path: Path) -> None:
    make().write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "cluster.json",
        "trial.json",
        "rendezvous.json",
        "resources.json",
    }
    cluster = json.loads((tmp_path / "cluster.json").read_text())
    assert {"master_url", "cluster_id", "slot_ids", "latest_checkpoint", "resolute"} <= cluster.keys()
    assert json.loads((tmp_path / "trial.json").read_text())["trial_run_id"] == 2


def test_the_info_is_read_once(tmp_path: Path) -> None:
    make().write(tmp_path)
    first = resolute.get_cluster_info()
    (tmp_path / "cluster.json").unlink()
    assert resolute.get_cluster_info() is first


def test_off_cluster_there_is_none() -> None:
    assert resolute.get_cluster_info() is None


def test_only_trials_have_a_trial() -> None:
    info = make(task_type="NOTEBOOK")
    assert info.latest_checkpoint is None
    assert info.user_data == {}
    assert (info.container_addrs, info.container_rank, info.container_slot_counts) == (["127.0.0.1"], 0, [2])
    with pytest.raises(RuntimeError, match="a NOTEBOOK task has no trial"):
        _ = info.trial


def test_damaged_info_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(DataLossError, match=r"cluster\.json holds no JSON"):
        resolute.get_cluster_info()


def test_keys_of_newer_supervisors_are_ignored() -> None:
    content = {**Connection("a", "e", "t", 1, "p").to_json(), "newer": 1}
    assert Connection.from_json(content).run == 1
    with pytest.raises(DataLossError, match="does not say how to reach the services"):
        Connection.from_json({"address": "a"})


def test_the_environment_describes_a_task_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match=r"DET_MASTER, DET_CLUSTER_ID.*are missing"):
        ClusterInfo._from_env()
    for name, value in {
        "DET_MASTER": "http://m",
        "DET_CLUSTER_ID": "c",
        "DET_AGENT_ID": "a",
        "DET_SLOT_IDS": "[0]",
        "DET_TASK_ID": "t",
        "DET_ALLOCATION_ID": "al",
        "DET_SESSION_TOKEN": "s",
        "DET_TASK_TYPE": "TRIAL",
        "DET_TRIAL_ID": "1",
        "DET_EXPERIMENT_ID": "2",
        "DET_TRIAL_SEED": "3",
        "DET_HPARAMS": '{"lr": 1}',
        "DET_EXPERIMENT_CONFIG": '{"debug": true}',
        "DET_TRIAL_RUN_ID": "4",
        "DET_LATEST_CHECKPOINT": "x",
    }.items():
        monkeypatch.setenv(name, value)
    info = ClusterInfo._from_env()
    assert (info.slot_ids, info.latest_checkpoint, info.trial.trial_seed, info.trial._debug) == (
        [0],
        "x",
        3,
        True,
    )


def test_the_package_is_cheap_to_import() -> None:
    script = """
import sys
import resolute
assert not {"torch", "grpc", "numpy", "google.protobuf"} & set(sys.modules), "heavy"
assert resolute.__version__ and resolute.LOG_FORMAT.startswith("%(levelname)s: ")
assert resolute.core.init and resolute.InvalidHP and resolute.errors.ResoluteError
try:
    resolute.nonsense
except AttributeError as failure:
    assert "nonsense" in str(failure)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_reason_for_invalid_hyperparameters_is_a_text() -> None:
    assert str(resolute.InvalidHP("too large")) == "too large"
    with pytest.raises(TypeError, match="takes a text"):
        resolute.InvalidHP(3)  # type: ignore[arg-type]
