"""What `resolute diff` finds between trials and between runs."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.experiments.v1 import run_pb2
from resolute.api.experiments.v1.experiment_pb2 import CodeSource
from resolute.api.experiments.v1.run_environment_pb2 import RunEnvironment


def packed(**files: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{name}.py")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return target.getvalue()


@pytest.fixture
def pair(cluster: ScriptedCluster) -> ScriptedCluster:
    """Two trials of experiments with different configs and code; the first has had two runs."""
    state = cluster.state
    runs = [
        run_pb2.Run(run=1, exit_code=3, outcome=run_pb2.RUN_OUTCOME_FAILED),
        run_pb2.Run(run=2, exit_code=0),
    ]
    for number, code in enumerate(
        [{"a": "x = 1\n", "b": "same\n"}, {"a": "x = 2\n", "b": "same\n", "c": ""}]
    ):
        archive = packed(**code)
        experiment = state.add_experiment(
            config={"searcher": {"name": "single"}, "resources": {"slots_per_trial": number}},
            model_definition_bytes=len(archive),
            source=CodeSource(git_commit=str(number) * 40, git_branch="main", git_diff="+a\n+b\n" * number),
        )
        state.archives[experiment.experiment_id] = archive
        trial = state.add_trial(experiment, hparams={"lr": 0.1, "net": {"width": number}}, runs=runs[number:])
        state.add_report(trial, steps=1, loss=0.5)
        state.add_report(trial, steps=2, loss=0.25 + number)
        state.environments[number + 1] = RunEnvironment(
            host_name="one",
            packages=[
                RunEnvironment.Package(name="numpy", version="2.1"),
                RunEnvironment.Package(name="torch", version=f"2.{number + 5}.0"),
            ],
        )
    return cluster


def compared(resolute: CommandLine, *arguments: str, code: int) -> dict[str, Any]:
    outcome = resolute("diff", *arguments, "--json")
    assert outcome.code == code, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    assert found["differs"] is (code == 1)
    comparison: dict[str, Any] = found["comparison"]
    return comparison


@pytest.mark.usefixtures("pair")
def test_trials_differ_in_values_and_lines_of_code(resolute: CommandLine) -> None:
    found = compared(resolute, "1", "2", code=1)
    assert found["config"] == [{"path": "resources.slots_per_trial", "a": 0, "b": 1}]
    assert found["hyperparameters"] == [{"path": "net.width", "a": 0, "b": 1}]
    changes = {one["path"]: one["change"] for one in found["code"]}
    assert changes == {"a.py": "changed", "c.py": "added"}
    assert "-x = 1\n+x = 2" in found["code"][0]["diff"]
    sources = {one["path"]: (one["a"], one["b"]) for one in found["source"]}
    assert sources == {
        "git commit": ("0" * 40, "1" * 40),
        "uncommitted changes": ("", "+a\n+b\n"),
    }
    text = resolute("diff", "1", "2").out
    assert "2 lines (" in text
    assert "net.width" in text
    assert "+x = 2" in text


@pytest.mark.usefixtures("pair")
def test_runs_are_compared_by_how_they_ended_and_a_trial_equals_itself(resolute: CommandLine) -> None:
    found = compared(resolute, "1.1", "1.2", code=1)
    packages = {one["path"]: (one["a"], one["b"]) for one in found["environment"]}
    assert packages == {"packages.torch": ("2.5.0", "2.6.0")}
    facts = {one["path"]: (one["a"], one["b"]) for one in found["run"]}
    assert facts["exit code"] == (3, 0)
    assert found["config"] == found["code"] == []
    compared(resolute, "1", "1", code=0)


@pytest.mark.parametrize(
    ("key", "code", "message"),
    [
        ("1.9", 1, "has no run 9; it has had 2"),
        ("1.0", 2, "nor a run of one"),
        ("1.x", 2, "nor a run of one"),
    ],
)
@pytest.mark.usefixtures("pair")
def test_a_run_that_there_is_not_is_named(resolute: CommandLine, key: str, code: int, message: str) -> None:
    outcome = resolute("diff", key, "1")
    assert outcome.code == code
    assert message in outcome.err
