"""Every name that docs/from-determined.md calls the same is there, takes what is documented, and works."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import client_names
import pytest
from support.clusters.tenants import Tenant, tenants
from support.waiting import wait_until

from determined.experimental import client
from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.contracts.messages import enum_member
from resolute.errors import NotFoundError, UnimplementedError
from resolute_serving.context import Role, User

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = "print('hello')\n"
PACHYDERM = {
    "pachd": {"host": "data", "port": 80},
    "proxy": {"scheme": "http", "host": "data", "port": 81},
    "dataset": {"project": "p", "repo": "digits", "commit": "c", "branch": "b", "token": "t"},
}


LISTS = client_names.read()
SAME = {name.name: name for name in LISTS.same}


def named(name: str) -> Any:
    """What the client has by a documented name."""
    return functools.reduce(getattr, name.split("."), client)


def test_the_page_has_these_lists() -> None:
    assert client_names.table() in (ROOT / "docs/from-determined.md").read_text()


def takes_what_is_documented(name: Any) -> bool:
    """Whether a documented call with any of its arguments is a call of the client."""
    taken = list(inspect.signature(named(name.name)).parameters.values())[1 if name.owner else 0 :]
    documented = [one.removesuffix("=") for one in name.parameters]
    given = {one.removesuffix("=") for one in name.parameters if not one.endswith("=")}
    needed = {one.name for one in taken if one.default is one.empty}
    return [one.name for one in taken][: len(documented)] == documented and needed <= given


def test_documented_names_are_there_and_take_the_documented_arguments() -> None:
    for name in [*LISTS.same, *LISTS.different]:
        if name.kind == "member":
            assert isinstance(named(name.name), Enum), name
        elif name.kind == "attribute":
            owner, last = getattr(client, name.owner), name.name.rpartition(".")[2]
            assert hasattr(owner, last) or last in owner.__dataclass_fields__, name
        else:
            assert takes_what_is_documented(name), name


def test_what_is_refused_says_what_to_use_instead() -> None:
    for name in LISTS.refused:
        if name.owner in {"ResourcePool", "Oauth2ScimClient"}:
            refused: Callable[[], Any] = getattr(client, name.owner)
        else:
            method = named(name.name)
            given = [None for _ in name.parameters]
            refused = functools.partial(method, *([None] if name.owner else []), *given)
        with pytest.raises(UnimplementedError, match="is not available: "):
            refused()


class Spy:
    """Notes which of the names that are the same a script uses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used: set[str] = set()
        for name in SAME.values():
            if name.kind.startswith("("):
                owner, last = getattr(client, name.owner, client), name.name.rpartition(".")[2]
                monkeypatch.setattr(owner, last, self._noting(name.name, getattr(owner, last)))

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        # The functions are methods of one object, of the class that this name stands for.
        names = {name, f"Determined.{name}"} if inspect.ismethod(function) else {name}

        @functools.wraps(function)
        def noting(*given: Any, **named: Any) -> Any:
            self.used |= names
            return function(*given, **named)

        return noting

    def read(self, owner: str, thing: Any) -> dict[str, Any]:
        """Reads all attributes of an object."""
        names = [name for name in SAME.values() if name.owner == owner and name.kind == "attribute"]
        self.used |= {name.name for name in names}
        return {last: getattr(thing, last) for last in (name.name.rpartition(".")[2] for name in names)}

    def every(self, kind: Any) -> list[Any]:
        """All documented members of an enum, by whichever of its names."""
        members = [name for name in SAME.values() if getattr(client, name.owner, None) is kind]
        self.used |= {name.name for name in members}
        return [named(name.name) for name in members]


def users(spy: Spy) -> None:
    me = client.whoami()
    assert (me.username, client.get_session_username(), me.admin) == ("admin", "admin", True)
    with pytest.raises(ValueError, match=r"You can only call login\(\) once"):
        client.login()
    grace = client.create_user("grace", False, "Correct-Horse-1")
    grace.rename("grace2")
    grace.change_password("Correct-Horse-2")
    grace.deactivate()
    grace.reload()
    assert spy.read("User", grace) == {
        "user_id": grace.user_id,
        "username": "grace2",
        "admin": False,
        "active": False,
    }
    assert [one.username for one in client.list_users(active=False)] == ["grace2"]
    grace.activate()
    assert client.get_user_by_id(grace.user_id).active
    assert client.get_user_by_name("grace2").user_id == grace.user_id
    with pytest.raises(NotFoundError, match="user 'grace' does not exist"):
        client.get_user_by_name("grace")
    with pytest.raises(NotFoundError, match="user 1000000 does not exist"):
        client.get_user_by_id(10**6)


def workspaces(spy: Spy) -> None:
    made = client.create_workspace("vision")
    made.reload()
    assert spy.read("Workspace", client.get_workspace("vision")) == {"id": made.id, "name": "vision"}
    assert "vision" in [one.name for one in client.list_workspaces()]
    project = made.create_project("cats", "whiskers")
    project.set_name("dogs")
    project.set_description("tails")
    project.add_note("first", "a\nb")
    project.add_note("second", "c")
    assert project.notes == [{"name": "first", "contents": "a\nb"}, {"name": "second", "contents": "c"}]
    project.remove_note("first")
    with pytest.raises(ValueError, match="0 notes"):
        project.remove_note("first")
    assert [note["name"] for note in project.notes] == ["second"]
    project.archive()
    assert project.archived
    project.unarchive()
    project.reload()
    assert project.list_experiments() == []
    assert spy.read("Project", made.get_project("dogs")) == {
        "id": project.id,
        "archived": False,
        "description": "tails",
        "n_active_experiments": 0,
        "n_experiments": 0,
        "name": "dogs",
        "workspace_id": made.id,
        "username": "admin",
    }
    assert [one.name for one in made.list_projects()] == ["dogs"]
    made.delete_project("dogs")
    client.delete_workspace("vision")


def experiments(spy: Spy, tenant: Tenant, folder: Path) -> None:
    (folder / "train.py").write_text(SCRIPT)
    config: dict[str, Any] = {
        "name": "mine",
        "entrypoint": "true",
        "workspace": tenant.name,
        "project": tenant.name,
    }
    config["searcher"] = {"name": "custom", "metric": "loss"}
    with pytest.raises(ValueError, match="config parameter must be dictionary or path"):
        client.create_experiment(7)  # type: ignore[arg-type]
    made = client.create_experiment(config, folder)
    made.set_name("ours")
    made.set_description("about it")
    made.set_notes("noted")
    made.set_labels({"a", "b"})
    made.add_label("c")
    made.remove_label("a")
    made.pause()
    assert made.state is client.ExperimentState.PAUSED
    made.activate()
    made.reload()
    read = spy.read("Experiment", made)
    assert (read["name"], read["description"], read["notes"]) == ("ours", "about it", "noted")
    assert (made.labels, read["archived"], read["progress"]) == ({"b", "c"}, False, 0.0)
    assert (read["workspace_id"], read["project_id"]) == (tenant.workspace_id, tenant.project_id)
    assert read["config"]["searcher"]["name"] == "custom"
    with pytest.raises(ValueError, match="no integrations"):
        made.get_pachyderm_config()
    assert Path(made.download_code(str(folder / "code"))).name == f"exp-{made.id}_model_def.tar.gz"
    made.cancel()
    assert made.wait() is client.ExperimentState.CANCELED
    made.delete_tensorboard_files()
    made.archive()
    made.unarchive()
    made.move_to_project("Uncategorized", "Uncategorized")
    assert made.workspace == "Uncategorized"
    other = client.create_experiment({**config, "integrations": {"pachyderm": PACHYDERM}})
    assert other.get_pachyderm_config()["dataset"]["repo"] == "digits"
    other.kill()
    assert other.wait() is client.ExperimentState.CANCELED
    for key in spy.every(client.ExperimentSortBy):
        listed = client.list_experiments(key, client.OrderBy.DESCENDING, experiment_ids=[made.id, other.id])
        assert {one.id for one in listed} == {made.id, other.id}
    made.delete()


STATES: dict[type[Enum], tuple[Any, str]] = {
    client.ExperimentState: (experiment_pb2.ExperimentState, "EXPERIMENT_STATE_"),
    client.TrialState: (trial_pb2.TrialState, "TRIAL_STATE_"),
    client.CheckpointState: (checkpoint_pb2.CheckpointState, "CHECKPOINT_STATE_"),
}
"""States that the services tell, and what their names begin with there."""


def states(spy: Spy) -> None:
    for kind, (wire, prefix) in STATES.items():
        for state in spy.every(kind):
            if f"{prefix}{state.name}" in {*wire.keys()}:
                told = wire.Value(f"{prefix}{state.name}")
                assert enum_member(kind, wire.DESCRIPTOR, told) is state
            else:  # what an active experiment does
                assert kind is client.ExperimentState, state

    # Deleted ones are listed where they are asked for by name alone.
    documented = {*spy.every(client.ExperimentState)} - {client.ExperimentState.DELETED}

    def listed_by_state() -> set[int]:
        return {one.id for state in documented for one in client.list_experiments(states=[state])}

    # One that is being deleted, or changes its state between two lists, is in one of them alone.
    wait_until(
        lambda: listed_by_state() == {one.id for one in client.list_experiments()},
        what="every experiment to be listed by its state",
    )
    completed = client.ExperimentState.COMPLETED
    assert {one.id for one in client.list_experiments(states=[completed])} == {
        one.id for one in client.list_experiments() if one.state is completed
    }


def trials(spy: Spy, tenant: Tenant) -> None:
    trial = client.get_trial(tenant.trial_number)
    trial.reload()
    whole = trial.get_experiment()
    assert client.get_experiment(whole.id).id == whole.id
    assert spy.read("Trial", trial)["experiment_id"] == whole.id
    for key in spy.every(client.TrialSortBy):
        for order in spy.every(client.OrderBy):
            assert [one.id for one in whole.list_trials(key, order)] == [trial.id]
    assert [one.id for one in whole.get_trials()] == [trial.id]
    assert trial.summary_metrics["validation_metrics"]["loss"]["max"] == 0.5
    assert list(trial.logs()) == list(trial.iter_logs(timestamp_before=1, head=5)) == ["hello\n"]
    assert list(trial.iter_logs(timestamp_after="1970-01-01T00:00:02Z")) == []
    with pytest.raises(ValueError, match="negative"):
        list(trial.iter_logs(tail=-1))
    for time in ("yesterday", 5.5):
        with pytest.raises(ValueError, match=r"yesterday|a time is 5\.5"):
            list(trial.iter_logs(timestamp_before=time))  # type: ignore[arg-type]
    (report,) = trial.iter_metrics("validation")
    assert spy.read("TrialMetrics", report)["total_batches"] == 1
    (report,) = trial.stream_validation_metrics()
    assert type(report) is client.ValidationMetrics
    assert spy.read("ValidationMetrics", report)["metrics"] == {"loss": 0.5}
    assert [*trial.stream_training_metrics(), *client.stream_trials_training_metrics([trial.id])] == []
    assert len(list(trial.stream_metrics("validation"))) == 1
    assert len(list(client.stream_trials_metrics([trial.id], "validation"))) == 1
    (report,) = client.stream_trials_validation_metrics([trial.id])
    made = client.TrainingMetrics(1, 1, 2, None, {}, "training")
    assert spy.read("TrainingMetrics", made)["total_batches"] == 2
    for key in spy.every(client.CheckpointSortBy):
        (one,) = trial.get_checkpoints(key, client.OrderBy.DESC)
        assert one.uuid == tenant.checkpoint_id
    assert trial.top_checkpoint().uuid == tenant.checkpoint_id
    with pytest.raises(ValueError, match="sort_by is 7"):
        trial.list_checkpoints(7, client.OrderBy.ASC)  # type: ignore[arg-type]


def models(spy: Spy, tenant: Tenant) -> None:
    model = client.create_model("net", "a net", {"k": 1})
    model.add_metadata({"l": 2})
    model.remove_metadata(["k"])
    model.set_labels(["good"])
    for labels in ("good", [1]):
        with pytest.raises(ValueError, match="a list of texts was expected"):
            model.set_labels(labels)  # type: ignore[arg-type]
    model.set_description("the net")
    model.move_to_workspace(tenant.name)
    version = model.register_version(tenant.checkpoint_id)
    version.set_name("first")
    version.set_notes("noted")
    version.reload()
    read = spy.read("ModelVersion", version)
    assert (read["model_name"], read["model_version"], read["name"], read["notes"]) == (
        "net",
        1,
        "first",
        "noted",
    )
    assert read["checkpoint"].uuid == tenant.checkpoint_id
    assert [
        one.model_version for one in [*model.list_versions(), *model.get_versions(client.OrderBy.ASC)]
    ] == [1, 1]
    model.archive()
    model.unarchive()
    model.reload()
    read = spy.read("Model", client.get_model("net"))
    assert (read["metadata"], read["labels"], read["description"]) == ({"l": 2}, ["good"], "the net")
    assert (read["workspace_id"], read["username"], read["archived"]) == (tenant.workspace_id, "admin", False)
    assert client.get_model_by_id(model_id=model.model_id).name == "net"
    assert client.get_model_labels() == ["good"]
    for key in spy.every(client.ModelSortBy):
        assert len(client.list_models(key, client.OrderBy.DESCENDING, name="net")) == 1
    cluster = client.Determined()
    with cluster:
        found = [*client.get_models(name="net"), *cluster.get_models(name="net")]
        assert [one.name for one in found] == ["net", "net"]
        assert len(list(cluster.stream_trials_metrics([tenant.trial_number], "validation"))) == 1
    version.delete()
    model.delete()


def checkpoints(spy: Spy, tenant: Tenant, folder: Path) -> None:
    checkpoint = client.get_checkpoint(tenant.checkpoint_id)
    checkpoint.add_metadata({"good": True, "bad": 1})
    checkpoint.remove_metadata(["bad"])
    checkpoint.reload()
    read = spy.read("Checkpoint", checkpoint)
    assert read["metadata"] == {"steps_completed": 1, "good": True}
    assert read["resources"] == {"weights": 7}
    assert read["training"].validation_metrics == {"loss": 0.5}
    for mode in spy.every(client.DownloadMode):
        found = checkpoint.download(str(folder / mode.name), mode)
        assert (Path(found) / "weights").read_text() == "weights"
    checkpoint.write_metadata_file(str(folder / "metadata.json"))
    client.get_model(tenant.model_name).delete()
    checkpoint.delete()
    client.get_trial(tenant.trial_number).kill()


def test_every_name_that_is_the_same_is_used_by_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spy = Spy(monkeypatch)

    def script(tenant: Tenant) -> None:
        users(spy)
        workspaces(spy)
        experiments(spy, tenant, tmp_path)
        states(spy)
        trials(spy, tenant)
        models(spy, tenant)
        checkpoints(spy, tenant, tmp_path)
        client.logout()
        client.logout()
        assert "logout() has no effect" in caplog.text

    async def scenario() -> None:
        async with tenants(tmp_path / "services") as platform:
            token = platform.running.signer.user(User("admin", Role.ADMIN, 1), ttl=3600.0)
            monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path))
            monkeypatch.setenv("RESOLUTE_MASTER", platform.running.address)
            monkeypatch.setenv("RESOLUTE_TOKEN", token)
            await asyncio.to_thread(script, platform.alpha)

    asyncio.run(scenario())
    older = {"ExperimentReference", "TrialReference"}
    references = {name.name for name in SAME.values() if name.owner in older}
    assert client.ExperimentReference is client.Experiment
    assert client.TrialReference is client.Trial
    assert set(SAME) - references - spy.used == set()
