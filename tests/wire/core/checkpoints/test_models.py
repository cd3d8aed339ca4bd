"""Models and their versions, by scripts and by the command line, through the real service."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog
from support.clusters.trial_cluster import Trial, cluster
from support.logs import plain_logs

from resolute import core
from resolute.cli.main import run
from resolute.client import Client, ModelSortBy, OrderBy
from resolute.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

Command = Callable[..., str]


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    # Unconfigured, the server would log to stdout, where the tests look for what commands print.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with cluster(tmp_path) as running:
        running.enter(monkeypatch)
        home = tmp_path / "person"
        home.mkdir()
        (home / "token").write_text(running.services.running.user_token())
        endpoint = {
            "address": running.services.address,
            "token_path": str(home / "token"),
            "cluster_id": "",
            "pid": 1,
        }
        (home / "endpoint.json").write_text(json.dumps(endpoint))
        for name in ("RESOLUTE_MASTER", "DET_MASTER", "RESOLUTE_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("RESOLUTE_HOME", str(home))
        yield running
    plain_logs()


@pytest.fixture
def script(trial: Trial) -> Iterator[Client]:
    with Client() as client:
        yield client


@pytest.fixture
def resolute(trial: Trial, capfd: pytest.CaptureFixture[str]) -> Command:
    def call(*arguments: str, code: int = 0) -> str:
        capfd.readouterr()
        found = run(list(arguments), program="resolute")
        out, err = capfd.readouterr()
        assert found == code, err
        return out + err

    return call


@pytest.fixture
def checkpoints(trial: Trial) -> list[str]:
    ids = []
    with core.init() as context:
        for steps in (1, 2):
            with context.checkpoint.store_path({"steps_completed": steps}) as (path, checkpoint_id):
                (path / "model.pt").write_bytes(b"weights")
            ids.append(checkpoint_id)
    return ids


def test_a_registered_checkpoint_stays_until_its_version_goes(
    script: Client, checkpoints: list[str], tmp_path: Path
) -> None:
    model = script.create_model("digits", "reads digits", {"team": "vision"}, labels=["b", "a"])
    first = model.register_version(checkpoints[0], name="baseline", metadata={"accuracy": 0.9})
    model.register_version(checkpoints[1])
    assert (first.model_version, first.name, first.metadata) == (1, "baseline", {"accuracy": 0.9})
    assert [version.model_version for version in model.list_versions()] == [2, 1]
    latest = model.get_version()
    assert latest is not None
    assert latest.checkpoint.uuid == checkpoints[1]
    assert set(latest.checkpoint.resources) == {"model.pt", "metadata.json"}
    assert model.get_version(3) is None
    checkpoint = script.get_checkpoint(checkpoints[0])
    for refused in (checkpoint.delete, lambda: checkpoint.remove_files(["*.pt"])):
        with pytest.raises(FailedPreconditionError, match="is version 1 of the model 'digits'"):
            refused()
    first.delete()
    first.delete()
    checkpoint.delete()
    third = model.register_version(checkpoints[1])
    assert third.model_version == 3, "a number is not given twice"
    model.delete()
    script.get_checkpoint(checkpoints[1]).delete()


def test_what_is_said_of_models_can_be_changed_and_found(script: Client, checkpoints: list[str]) -> None:
    model = script.create_model("digits", metadata={"team": "vision", "age": 1}, labels=["old"])
    other = script.create_model("Letters", workspace_name="text")
    model.add_metadata({"age": 2})
    model.remove_metadata(["team"])
    model.set_labels(["new", "fast"])
    model.set_description("reads 100% of digits")
    model.move_to_workspace("vision")
    again = script.get_model_by_id(model.model_id)
    assert (again.metadata, again.labels, again.workspace) == ({"age": 2}, ["fast", "new"], "vision")
    assert [found.name for found in script.list_models(name="LETT")] == ["Letters"]
    assert [found.name for found in script.list_models(description="100%")] == ["digits"]
    assert [found.name for found in script.list_models(workspace_names=["text"])] == ["Letters"]
    newest = script.list_models(sort_by=ModelSortBy.CREATION_TIME, order_by=OrderBy.DESCENDING)
    assert [found.name for found in newest] == ["Letters", "digits"]
    assert script.get_model_labels() == ["fast", "new"]
    version = model.register_version(checkpoints[0])
    version.set_name("golden")
    version.set_notes("# notes")
    version.reload()
    assert (version.name, version.notes) == ("golden", "# notes")
    model.archive()
    with pytest.raises(FailedPreconditionError, match="archived and takes no versions"):
        model.register_version(checkpoints[1])
    model.unarchive()
    model.register_version(checkpoints[1])
    other.delete()
    with pytest.raises(NotFoundError, match="model 'Letters' does not exist"):
        script.get_model("Letters")


def test_wrong_names_and_checkpoints_are_refused(script: Client, checkpoints: list[str]) -> None:
    script.create_model("digits")
    with pytest.raises(AlreadyExistsError, match="there is a model 'digits' already"):
        script.create_model("digits")
    for wrong, problem in (("", "is ''"), (" x", "is ' x'"), ("42", "may not be a number"), ("x" * 201, "x")):
        with pytest.raises(InvalidArgumentError, match=problem):
            script.create_model(wrong)
    model = script.create_model("模型 % ' \"")
    assert script.get_model("模型 % ' \"").model_id == model.model_id
    with pytest.raises(NotFoundError, match="does not exist"):
        model.register_version(str(uuid.uuid4()))
    script.get_checkpoint(checkpoints[0]).delete()
    with pytest.raises(NotFoundError, match="its files are not available"):
        model.register_version(checkpoints[0])


def test_the_command_line_leads_models(
    script: Client, resolute: Command, checkpoints: list[str], tmp_path: Path
) -> None:
    assert "digits has the number 1" in resolute(
        "model", "create", "digits", "--label", "vision", "--metadata", "layers=3"
    )
    registered = resolute("model", "register-version", "digits", checkpoints[0], "--comment", "first")
    assert f"checkpoint {checkpoints[0]} is version 1 of model digits" in registered
    described = json.loads(resolute("model", "describe", "digits", "--json"))
    assert described["model"]["metadata"] == {"layers": 3}
    assert described["versions"][0]["checkpoint"]["uuid"] == checkpoints[0]
    assert "first" in resolute("model", "describe", "1")
    assert checkpoints[0] in resolute("model", "list-versions", "digits")
    assert checkpoints[0] in resolute("model", "describe-version", "digits")
    target = tmp_path / "fetched"
    resolute("model", "download", "digits", "1", "-o", str(target))
    assert (target / "model.pt").read_bytes() == b"weights"
    assert "is version 1" in resolute("checkpoint", "delete", checkpoints[0], "-y", code=1)
    resolute("model", "set", "digits", "--name", "numbers", "--label", "x", "--metadata", "layers=4")
    assert script.get_model("numbers").metadata == {"layers": 4}
    resolute("model", "archive", "numbers")
    assert "numbers" not in resolute("model", "list")
    assert "numbers" in resolute("model", "list", "--all")
    resolute("model", "unarchive", "numbers")
    assert "write KEY=VALUE" in resolute("model", "set", "numbers", "--metadata", "x", code=2)
    resolute("model", "delete-version", "numbers", "1", "-y")
    resolute("model", "delete", "numbers", "-y")
    assert "model 'numbers' does not exist" in resolute("model", "describe", "numbers", code=1)


def test_pins_are_set_and_taken_by_the_command_line(resolute: Command, checkpoints: list[str]) -> None:
    assert "is pinned" in resolute("checkpoint", "pin", ",".join(checkpoints))
    assert "unpin it" in resolute("checkpoint", "delete", checkpoints[0], "-y", code=1)
    resolute("checkpoint", "unpin", checkpoints[0])
    assert "is DELET" in resolute("checkpoint", "delete", checkpoints[0], "-y")
