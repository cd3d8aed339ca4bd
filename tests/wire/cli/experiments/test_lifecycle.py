"""Leading experiments by the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster
from wire.cli.scripted_state import State

from resolute.api.experiments.v1 import experiment_pb2

COMPLETED = experiment_pb2.EXPERIMENT_STATE_COMPLETED
Later = Callable[[Callable[[], object]], None]


def test_commands_change_each_experiment_of_a_list(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    for _ in range(3):
        cluster.state.add_experiment()
    assert resolute("e", "pause", "1,3").out == "experiment 1 is pausing\nexperiment 3 is pausing\n"
    states = [message.state for message in cluster.state.experiments]
    paused, active = experiment_pb2.EXPERIMENT_STATE_PAUSED, experiment_pb2.EXPERIMENT_STATE_ACTIVE
    assert states == [paused, active, paused]
    assert resolute("e", "unpause", "1").out == "experiment 1 is active\n"
    assert resolute("e", "cancel", "2").out == "experiment 2 is ending\n"
    assert resolute("e", "kill", "3").out == "experiment 3 is being killed\n"
    assert resolute("e", "archive", "1").out == "experiment 1 is archived\n"
    assert cluster.state.experiments[0].archived
    assert resolute("e", "unarchive", "1").out == "experiment 1 is shown again\n"
    assert not cluster.state.experiments[0].archived


def test_one_refusal_does_not_keep_others_from_changing(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    cluster.state.add_experiment(state=COMPLETED)
    cluster.state.add_experiment()
    outcome = resolute("e", "kill", "1,7,2")
    assert outcome.code == 1
    assert outcome.out == "experiment 2 is being killed\n"
    assert outcome.err == (
        "error: experiment 1 is COMPLETED and cannot become STOPPING_KILLED\n"
        "error: there is no experiment 7\n"
    )


def test_an_experiment_can_be_named_by_its_uuid(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    uuid = cluster.state.add_experiment().experiment_id
    assert resolute("e", "kill", uuid.upper()).out == "experiment 1 is being killed\n"


@pytest.mark.parametrize("name", ["x", "0", "1,x", "-1", ","])
def test_what_names_no_experiment_is_a_usage_error(resolute: CommandLine, name: str) -> None:
    outcome = resolute("e", "kill", "--", name)
    assert outcome.code == 2
    assert "an experiment" in outcome.err


def test_delete_asks_first(
    cluster: ScriptedCluster, resolute: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.state.add_experiment(state=COMPLETED)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt="": "n")
    outcome = resolute("e", "delete", "1")
    assert outcome.code == 1
    assert outcome.err.endswith("nothing changed\n")
    assert cluster.state.experiments[0].state == COMPLETED
    assert resolute("e", "delete", "1", "--yes").out == "experiment 1 is being removed\n"
    assert cluster.state.experiments[0].state == experiment_pb2.EXPERIMENT_STATE_DELETING


def test_an_active_experiment_is_not_deleted(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    cluster.state.add_experiment()
    outcome = resolute("e", "delete", "1", "-y")
    assert outcome.code == 1
    assert outcome.err == "error: experiment 1 is ACTIVE and cannot become DELETING; kill it first\n"


@pytest.mark.parametrize(
    ("state", "code", "text"),
    [
        (COMPLETED, 0, "experiment 1 COMPLETED"),
        (experiment_pb2.EXPERIMENT_STATE_CANCELED, 1, "experiment 1 CANCELED"),
        (experiment_pb2.EXPERIMENT_STATE_ERROR, 1, "experiment 1 ERROR: trial 1 failed"),
    ],
)
def test_wait_tells_the_end_by_its_exit_code(
    cluster: ScriptedCluster, resolute: CommandLine, later: Later, state: int, code: int, text: str
) -> None:
    experiment = cluster.state.add_experiment()
    failure = "trial 1 failed" if "failed" in text else ""

    def end(changing: State) -> None:
        changing.end(experiment, state, failure=failure)

    later(lambda: cluster.change(end))
    outcome = resolute("e", "wait", "1")
    assert outcome.out == f"{text}\n"
    assert outcome.code == code


def test_config_prints_yaml(cluster: ScriptedCluster, resolute: CommandLine) -> None:
    config = {"name": "digits", "hyperparameters": {"lr": 0.001}, "labels": ["a"]}
    cluster.state.add_experiment(config=config)
    assert yaml.safe_load(resolute("e", "config", "1").out) == config


def test_submitted_code_comes_back(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, tmp_path: Path
) -> None:
    resolute("e", "create", str(code / "const.yaml"), str(code))
    outcome = resolute("e", "download-model-def", "1", "-o", "out", "--extract")
    assert outcome.out == "out/experiment_1_model_def\n"
    directory = tmp_path / "out" / "experiment_1_model_def"
    assert (directory / "train.py").read_text() == (code / "train.py").read_text()
    outcome = resolute("e", "download-model-def", "1", "-o", "out")
    assert outcome.out == "out/experiment_1_model_def.tgz\n"
    again = resolute("e", "download-model-def", "1", "-o", "out", "-x")
    assert again.code == 1
    assert "is not empty" in again.err


def test_a_full_disk_is_named(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, tmp_path: Path
) -> None:
    resolute("e", "create", str(code / "const.yaml"), str(code))
    (tmp_path / ".experiment_1_model_def.tgz.partial").symlink_to("/dev/full")
    outcome = resolute("e", "download-model-def", "1")
    assert outcome.code == 1
    assert outcome.err.startswith("error: cannot write experiment_1_model_def.tgz: No space left on device")


def test_an_archive_that_climbs_out_is_not_unpacked(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.addfile(tarfile.TarInfo("../evil"), io.BytesIO())
    experiment = cluster.state.add_experiment()
    cluster.state.archives[experiment.experiment_id] = packed.getvalue()
    outcome = resolute("e", "download-model-def", "1", "-x")
    assert outcome.code == 1
    assert outcome.err.startswith("error: the model definition has an entry '../evil' outside of it")
    assert not (tmp_path / "evil").exists()
