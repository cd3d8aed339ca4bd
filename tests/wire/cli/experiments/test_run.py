"""A script as an experiment, without a config."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from wire.cli.conftest import CommandLine
from wire.cli.experiments.test_create import names
from wire.cli.experiments.test_follow import COMPLETED, Later, after_submission, ended, one_trial
from wire.cli.scripted import ScriptedCluster
from wire.cli.scripted_state import State


def test_a_script_of_this_directory_is_submitted_with_its_arguments(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code)
    outcome = resolute("run", "train.py", "--slots", "2", "--detach", "--", "--lr", "0.1 or so", "-v")
    assert (outcome.code, outcome.out) == (0, "Created experiment 1\n"), outcome.err
    config = yaml.safe_load(cluster.state.specs[0].config_yaml)
    assert config["name"] == "train.py"
    assert config["entrypoint"] == (
        "python3 -m determined.launch.torch_distributed -- train.py --lr '0.1 or so' -v"
    )
    assert config["resources"]["slots_per_trial"] == 2
    assert "max_length" not in config["searcher"], "the script decides how long it trains"
    (archive,) = cluster.state.archives.values()
    assert names(archive) == ["const.yaml", "train.py"]


def test_a_script_elsewhere_is_submitted_with_its_directory(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    code: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert resolute("run", str(code / "train.py"), "--detach").code == 0
    assert yaml.safe_load(cluster.state.specs[0].config_yaml)["entrypoint"] == "python3 train.py"
    (archive,) = cluster.state.archives.values()
    assert names(archive) == ["const.yaml", "train.py"]


@pytest.mark.parametrize(("options", "code_at_end"), [([], 0), (["--metric", "loss"], 1)])
def test_a_metric_that_nobody_named_is_not_missed(
    cluster: ScriptedCluster,
    resolute: CommandLine,
    code: Path,
    monkeypatch: pytest.MonkeyPatch,
    later: Later,
    options: list[str],
    code_at_end: int,
) -> None:
    def warn(state: State) -> None:
        state.experiments[0].warning = "no trial has reported searcher.metric 'loss'"

    monkeypatch.chdir(code)
    later(after_submission(cluster, one_trial, warn, ended(COMPLETED)))
    outcome = resolute("run", *options, "train.py")
    assert outcome.code == code_at_end
    assert outcome.out.splitlines()[-1] == "warning: no trial has reported searcher.metric 'loss'"


def test_a_script_that_does_not_exist_is_named(resolute: CommandLine) -> None:
    outcome = resolute("run", "nope.py")
    assert outcome.code == 2
    assert "nope.py" in outcome.err
