"""Submitting experiments by the command line."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.errors import InvalidConfigError, QuotaError, UnavailableError, Violation


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        return packed.getnames()


def test_create_uploads_config_and_code(cluster: ScriptedCluster, resolute: CommandLine, code: Path) -> None:
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert outcome.out == "Created experiment 1\n"
    assert outcome.code == 0
    (spec,) = cluster.state.specs
    assert spec.config_yaml == (code / "const.yaml").read_text()
    assert not spec.paused
    (archive,) = cluster.state.archives.values()
    assert names(archive) == ["const.yaml", "train.py"]


def test_the_git_work_tree_of_the_code_is_told_unless_it_shall_not(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, home: Path
) -> None:
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(code), *command], check=True)
    (code / "train.py").write_text(f"token = {(home / 'token').read_text()!r}\n")
    for option in ([], ["--no-git"], ["--git"]):
        assert resolute("e", "create", str(code / "const.yaml"), str(code), *option).code == 0
    told, silent, older = cluster.state.specs
    assert older.source == told.source
    assert told.source.git_branch == "main"
    assert "+token = '***'" in told.source.git_diff
    assert not silent.HasField("source")


def test_large_code_travels_in_chunks(cluster: ScriptedCluster, resolute: CommandLine, code: Path) -> None:
    import random

    noise = random.Random(0).randbytes(5 << 20)
    (code / "weights.bin").write_bytes(noise)
    assert resolute("experiment", "create", str(code / "const.yaml"), str(code)).code == 0
    (archive,) = cluster.state.archives.values()
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        member = packed.extractfile("weights.bin")
        assert member is not None
        assert member.read() == noise


def test_overrides_and_flags_reach_the_service(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, tmp_path: Path
) -> None:
    extra = tmp_path / "shared"
    extra.mkdir()
    (extra / "util.py").touch()
    outcome = resolute(
        "e", "create", str(code / "const.yaml"), str(code / "train.py"), "-i", str(extra), "--paused",
        "--template", "gpu", "--config", "hyperparameters.lr=2e-4", "--config", "searcher.name=single",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    (spec,) = cluster.state.specs
    config = json.loads(spec.config_yaml)
    assert config["hyperparameters"] == {"lr": 2e-4}
    assert config["searcher"] == {"name": "single"}
    assert spec.template == "gpu"
    assert spec.paused
    (archive,) = cluster.state.archives.values()
    assert names(archive) == ["shared", "shared/util.py", "train.py"]


def test_warnings_of_the_service_are_shown(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    cluster.state.warnings.append("resources.weight has no effect here")
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert "warning: resources.weight has no effect here" in outcome.err


def test_every_fault_of_a_config_is_on_a_line_of_its_own(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    faults = [Violation("searcher.metric", "missing; expected a name"), Violation("nane", "unknown field")]
    cluster.state.faults["CreateExperiment"].append(
        InvalidConfigError("the experiment config has 2 faults", violations=faults)
    )
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert outcome.code == 1
    assert outcome.err == (
        "error: the experiment config has 2 faults\n"
        "  searcher.metric: missing; expected a name\n"
        "  nane: unknown field\n"
    )


def test_faults_that_the_message_lists_are_not_repeated(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    message = "the experiment config has 1 fault:\n  nane: unknown field"
    cluster.state.faults["CreateExperiment"].append(
        InvalidConfigError(message, violations=[Violation("nane", "unknown field")])
    )
    assert resolute("e", "create", str(code / "const.yaml"), str(code)).err == f"error: {message}\n"


def test_an_upload_that_broke_off_is_repeated_with_the_same_id(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    cluster.state.faults["CreateExperiment"] += [UnavailableError("busy"), UnavailableError("busy")]
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert outcome.code == 0, outcome.err


def test_a_code_directory_over_the_services_limit_is_refused(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    cluster.state.faults["CreateExperiment"].append(
        QuotaError("the model definition exceeds the maximum allowed size of 10 bytes")
    )
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert outcome.code == 1
    assert outcome.err == "error: the model definition exceeds the maximum allowed size of 10 bytes\n"


def test_a_code_directory_over_the_own_limit_is_refused(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_MODEL_DEFINITION_LIMIT", "30")
    outcome = resolute("e", "create", str(code / "const.yaml"), str(code))
    assert outcome.code == 1
    assert "exceeds the maximum allowed size of 30 B" in outcome.err
    assert not cluster.state.experiments


def test_bad_yaml_is_refused_with_its_place(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path
) -> None:
    (code / "bad.yaml").write_text("name: digits\nsearcher: {name: single\n")
    outcome = resolute("e", "create", str(code / "bad.yaml"), str(code))
    assert outcome.code == 1
    assert outcome.err.startswith(f"error: {code / 'bad.yaml'}, line 3, column 1: not valid YAML")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.yaml", "code"), "error: cannot read the config missing.yaml: No such file or directory"),
        (
            ("code/const.yaml", "nowhere"),
            "error: cannot read nowhere: No such file or directory; check the path",
        ),
        (
            ("code/const.yaml", "code", "--config", "lr"),
            "error: 'lr' sets nothing; write --config FIELD.BELOW=VALUE",
        ),
        (
            ("code/const.yaml", "code", "--config", "name.x=1"),
            "error: cannot set name.x: name is 'digits', which is not a map",
        ),
        (
            ("code/const.yaml", "code", "-i", "code/train.py"),
            "error: code and code/train.py both bring 'train.py' into the model definition",
        ),
    ],
)
def test_bad_input_is_one_clear_line(
    cluster: ScriptedCluster, resolute: CommandLine, code: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = resolute("e", "create", *arguments)
    assert outcome.code == 1
    assert outcome.err.startswith(message)
    assert len(outcome.err.splitlines()) == 1
    assert not cluster.state.experiments


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--paused", "-f"), "--paused cannot be combined with --follow or --test-mode."),
        (("--local",), "--local needs --test-mode"),
    ],
)
def test_flags_that_exclude_each_other_are_usage_errors(
    resolute: CommandLine, code: Path, flags: tuple[str, ...], message: str
) -> None:
    outcome = resolute("e", "create", str(code / "const.yaml"), *flags)
    assert outcome.code == 2
    assert message in outcome.err
