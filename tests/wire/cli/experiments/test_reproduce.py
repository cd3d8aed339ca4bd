"""`resolute reproduce`: a trial runs again without its cluster, with what it had there."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from pathlib import Path

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import run_pb2
from resolute.api.experiments.v1.experiment_pb2 import CodeSource
from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment
from resolute.api.searcher.v1 import event_pb2, operation_pb2

KEY = "6f0d1b8e-0000-4000-8000-000000000007"
SCRIPT = """
import os
import resolute

info = resolute.get_cluster_info()
with resolute.core.init(checkpoint_storage="/nowhere/that/is/shared") as context:
    with context.checkpoint.restore_path(info.latest_checkpoint) as path:
        start = (path / "weights.txt").read_text()
    for op in context.searcher.operations():
        with context.checkpoint.store_path({"steps_completed": op.length}) as (path, _):
            facts = [start, info.trial.trial_seed, info.trial.hparams["lr"], op.length, os.environ["DEPTH"]]
            assert os.environ["UID"] == "7"
            (path / "weights.txt").write_text(" ".join(map(str, facts)))
        op.report_completed(0.5)
"""


def packed(text: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return target.getvalue()


def prepare(cluster: ScriptedCluster, weights: str) -> None:
    """A trial that started from a checkpoint of another, and trained to lengths 2 and 5."""
    state = cluster.state
    archive = packed(SCRIPT)
    experiment = state.add_experiment(
        config={
            "entrypoint": "python3 train.py",
            "searcher": {"name": "single", "max_length": {"batches": 5}},
            "environment": {"environment_variables": ["DEPTH=it's deep", "UID=7", "odd$(touch ran)=1", "=x"]},
        },
        model_definition_bytes=len(archive),
        source=CodeSource(git_commit="a" * 40, git_diff="+x\n"),
    )
    state.archives[experiment.experiment_id] = archive
    run = run_pb2.Run(run=1, slot_ids=[0], exit_code=0)
    trial = state.add_trial(experiment, seed=4711, trial_key=KEY, hparams={"lr": 0.25}, runs=[run])
    other = state.add_trial(experiment, trial_key="6f0d1b8e-0000-4000-8000-000000000008")
    source = state.add_checkpoint(other, {"weights.txt": b"base"}, steps=9)
    state.add_checkpoint(trial, {"weights.txt": b"base 4711 0.25 2 it's deep"}, steps=2)
    state.add_checkpoint(trial, {"weights.txt": weights.encode()}, steps=5)
    create = operation_pb2.Operation.Create(trial_key=KEY, checkpoint_id=source.checkpoint_id)
    lengths = [operation_pb2.Operation.ValidateAfter(trial_key=KEY, length=length) for length in (2, 5)]
    state.entries.append(
        event_pb2.LogEntry(
            event=event_pb2.Event(sequence=0),
            operations=[
                operation_pb2.Operation(create=create),
                *(operation_pb2.Operation(validate_after=length) for length in lengths),
            ],
        )
    )
    packages = [RunEnvironment.Package(name="a-package-that-is-gone", version="1.0")]
    state.environments[1] = RunEnvironment(python_version="3.11.1", packages=packages)


def test_it_has_hyperparameters_seed_lengths_variables_and_the_first_checkpoint(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    prepare(cluster, "base 4711 0.25 5 it's deep")
    outcome = resolute("reproduce", "1", "--run")
    assert outcome.code == 0, outcome.err
    assert "have equal weights after 5 steps" in outcome.out
    assert "a-package-that-is-gone missing instead of 1.0" in outcome.err
    written = Path("reproduction-1")
    assert stat.S_IMODE(written.stat().st_mode) == 0o700
    assert "a-package-that-is-gone==1.0" in (written / "requirements.lock").read_text()
    assert json.loads((written / "source.json").read_text())["git_diff"] == "+x\n"
    assert len(list((written / "checkpoints").glob("*-*"))) == 3
    assert not list(written.rglob("ran"))


def test_other_weights_are_told_and_a_directory_is_not_reused(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    prepare(cluster, "base 4711 0.25 5 it's not")
    Path("again").mkdir(mode=0o755)
    outcome = resolute("reproduce", "1", "--run", "-o", "again", "--json")
    assert outcome.code == 1
    assert stat.S_IMODE(Path("again").stat().st_mode) == 0o700
    found = json.loads(outcome.out)
    assert not found["equal"]
    assert [file["equal"] for file in found["comparison"]["files"]] == [False]
    outcome = resolute("reproduce", "1", "-o", "again")
    assert outcome.code == 1
    assert "again is not empty" in outcome.err


@pytest.mark.parametrize("gpus", [["H100"], []])
def test_devices_are_those_of_the_recorded_run_and_not_of_the_slots_of_today(
    cluster: ScriptedCluster, resolute: CommandLine, gpus: list[str]
) -> None:
    prepare(cluster, "")
    cluster.state.environments[1].gpus.extend(gpus)
    assert resolute("reproduce", "1").code == 0
    script = Path("reproduction-1", "run.sh").read_text()
    assert ("CUDA_VISIBLE_DEVICES" in script) == (not gpus)


def test_a_directory_that_could_not_be_written_whole_is_not_there(
    cluster: ScriptedCluster, resolute: CommandLine
) -> None:
    prepare(cluster, "")
    cluster.state.archives.update(dict.fromkeys(cluster.state.archives, b"damaged"))
    assert resolute("reproduce", "1").code != 0
    assert not list(Path().glob("*reproduction-1*"))


@pytest.mark.usefixtures("cluster")
def test_a_trial_that_there_is_not_is_named(resolute: CommandLine) -> None:
    outcome = resolute("reproduce", "12")
    assert outcome.code == 1
    assert not Path("reproduction-12").exists()
