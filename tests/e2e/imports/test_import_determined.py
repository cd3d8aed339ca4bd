"""A whole Determined cluster is imported: as it was there, once, and the same after any interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.old_cluster import content as made_up
from support.old_cluster.content import CLUSTER_ID, Content, checkpoint_id
from support.old_cluster.going_on import weights_after
from support.old_cluster.master import OldMaster, serving_old_master
from support.old_cluster.snapshot import snapshot
from support.suite.sampling import Sample

from resolute.client import Client
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.remote.models import ModelFilter
from resolute.client.schema.accounts import UserRole

pytestmark = pytest.mark.sampled(2, group="clusters of their own", files=True)


def imported(cluster: EmbeddedCluster, address: str, *options: str, check: bool = True) -> str:
    """Runs the import; returns what it said."""
    password = cluster.home / "password"
    password.write_text("")
    command = ("resolute", "import", "determined", address, "--password-file", str(password), *options)
    return cluster.run(*command, check=check, timeout=300).stdout


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> Content:
    made = Content(experiments=7, directory=tmp_path_factory.mktemp("old"))
    made.write_files()
    return made


@pytest.fixture(scope="module")
def moved(content: Content, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """A cluster that has imported everything in one go."""
    with (
        embedded(tmp_path_factory.mktemp("home") / "h") as cluster,
        serving_old_master(OldMaster(content)) as at,
    ):
        imported(cluster, at)
        yield cluster


@pytest.fixture
def client(moved: EmbeddedCluster) -> Iterator[Client]:
    with moved.client() as opened:
        yield opened


@pytest.fixture(scope="module")
def whole(moved: EmbeddedCluster) -> dict[str, list[str]]:
    """What an import writes that nothing interrupts."""
    with moved.client() as opened:
        return snapshot(moved.home, opened)


def test_experiments_are_as_they_were(client: Client) -> None:
    services = client.services
    found = {one.name: one for one in (services.experiments.get(n) for n in range(1, 8))}
    three = found["experiment 3"]
    assert (three.state.name, three.owner, three.archived) == ("COMPLETED", "dave", False)
    assert (three.description, three.labels, three.notes) == (
        "what 3 is about",
        ("moved", "n3"),
        "notes of 3",
    )
    assert (three.workspace, three.project) == ("Uncategorized", "Uncategorized")
    assert three.create_time is not None
    assert three.end_time is not None
    assert three.create_time.astimezone(timezone.utc).isoformat() == "2020-09-13T13:16:40+00:00"
    assert (three.end_time - three.create_time).total_seconds() == 900
    assert three.config is not None
    assert three.config["hyperparameters"]["lr"]["minval"] == -3
    assert (three.searcher_name, three.searcher_metric) == ("random", "error")
    assert not three.warning
    assert {one.state.name for one in found.values()} == {"COMPLETED", "ERROR", "CANCELED"}
    assert found["experiment 5"].archived
    assert found["experiment 7"].searcher_name == "pbt"


def test_trials_have_their_states_metrics_and_lines(client: Client) -> None:
    services = client.services
    one, two = sorted(services.trials.list(1, with_runs=True), key=lambda trial: trial.id)
    assert (one.state.name, two.state.name) == ("ERROR", "CANCELED")
    assert (one.restarts, one.hparams) == (1, {"lr": 0.001, "layers": 1})
    assert [run.outcome.name for run in (*one.runs, *two.runs)] == ["FAILED", "KILLED"]
    reports = list(services.metrics.reports(one))
    groups = {
        group: [r for r in reports if r.group == group] for group in ("training", "validation", "inference")
    }
    assert [len(some) for some in groups.values()] == [20, 2, 1]
    assert groups["training"][0].metrics == {"loss": 2.0}
    assert (groups["training"][-1].steps_completed, groups["training"][-1].metrics["loss"]) == (200, 1.05)
    assert groups["validation"][0].metrics == {"error": 0.5, "nested.f1": 0.5}
    assert groups["inference"][0].metrics == {"speed": 1, "device": "a100"}
    lines = list(services.logs.list(one.uuid))
    assert [line.message for line in lines] == [f"trial 1 line {n}" for n in range(5)]
    assert [(line.level.name, line.rank, line.stdtype) for line in lines[:2]] == [
        ("INFO", 0, "stdout"),
        ("WARNING", 1, "stderr"),
    ]
    assert [line.message for line in services.logs.follow(one.uuid)] == [line.message for line in lines]


def test_checkpoints_keep_their_uuids_and_what_was_said_of_them(client: Client, content: Content) -> None:
    found = client.services.checkpoints.get(checkpoint_id(5, 20))
    assert (found.state.name, found.steps_completed) == ("COMPLETED", 20)
    assert found.metadata["note"] == {"of": 5}
    assert found.metadata["framework"] == "torch-1.10"
    assert [file.path for file in found.files] == ["code/", "weights.json"]
    assert str(content.directory) in str(found.storage)
    assert client.services.checkpoints.get(checkpoint_id(5, 10)).state.name == "DELETED"


def test_people_places_and_models_come_too(client: Client) -> None:
    services = client.services
    users = {user.name: user for user in services.access.list_users()}
    assert not users["dave"].active
    assert users["carol"].role is UserRole.MEMBER
    assert users["erin"].role is UserRole.EDITOR, "an admin of all workspaces is none of the cluster"
    roles = {(role.user, role.workspace): role.role for role in services.roles.list() if role.user != "admin"}
    assert roles == {
        ("carol", "lab"): UserRole.EDITOR,
        ("dave", "lab"): UserRole.EDITOR,
        ("carol", "attic"): UserRole.ADMIN,
        **{("erin", name): UserRole.ADMIN for name in ("Uncategorized", "lab", "attic")},
    }
    assert services.workspaces.get("attic").archived
    assert [services.workspaces.get(name).owner for name in ("lab", "attic")] == ["carol", "dave"]
    project = services.workspaces.find_project("lab", "vision")
    assert (project.description, "first this" in project.notes, project.owner) == ("sees", True, "dave")
    assert services.cluster.get_template("small").config == {"resources": {"slots_per_trial": 1}}
    assert services.config_policies.get().priority_limit == 10
    (model,) = services.models.list(ModelFilter())
    assert (model.name, model.labels, model.owner, model.workspace) == (
        "best of all",
        ("prod",),
        "carol",
        "lab",
    )
    assert [version.version for version in services.models.versions(model.id)] == [3, 1]


def test_old_numbers_are_found(moved: EmbeddedCluster) -> None:
    said = moved.run("resolute", "import", "find", "trial", "5").stdout
    assert said == f"trial 5 of cluster {CLUSTER_ID} is trial 5 here\n"
    table = moved.run("resolute", "import", "table").stdout.splitlines()
    assert table[0] == "kind,cluster,old,new,uuid"
    assert len(table) == 1 + 7 + 14
    assert moved.run("resolute", "import", "find", "experiment", "99", check=False).returncode == 1


def test_a_second_import_changes_nothing(
    moved: EmbeddedCluster, client: Client, content: Content, whole: dict[str, list[str]]
) -> None:
    asked: list[str] = []
    with serving_old_master(OldMaster(content, heard=asked.append)) as address:
        said = imported(moved, address)
    assert "experiments: 0 new, 7 here before" in said
    assert (
        "  role 'EditorRestricted' of user 'erin': there is none like it; an editor may start tasks too"
        in said
    )
    assert not [path for path in asked if path.endswith("model_def")], "no code is sent again"
    assert "trials" not in said
    assert snapshot(moved.home, client) == whole


def test_a_dry_run_counts_and_writes_nothing(
    moved: EmbeddedCluster, client: Client, content: Content, whole: dict[str, list[str]]
) -> None:
    with serving_old_master(OldMaster(content)) as address:
        said = imported(moved, address, "--dry-run").splitlines()
    assert {"experiments: 7 there", "trials: 14 there", "checkpoints: 42 there"} <= set(said)
    left = {
        "  experiments that have not ended: start the same import when they have",
        "  webhooks: endpoints of alerts take their place (docs/alerts.md)",
        "  notebooks",
        "  config policies of notebooks, shells and commands",
        (
            "  group 'team' (carol, dave): there are no groups; members have its roles each, and a "
            "provider's groups may give roles (docs/access.md)"
        ),
    }
    assert left <= set(said)
    assert snapshot(moved.home, client) == whole


@pytest.mark.parametrize("release", ["0.19.11", "0.30.0"])
def test_older_releases_tell_the_same(
    release: str, content: Content, whole: dict[str, list[str]], tmp_path: Path
) -> None:
    # This one answers every fifth call badly too, and in pages shorter than are asked for.
    old = OldMaster(content, release=release, fails_every=5, longest_page=3)
    with embedded(tmp_path / "h") as cluster, serving_old_master(old) as address:
        imported(cluster, address)
        with cluster.client() as opened:
            found = snapshot(cluster.home, opened)
    missing = {"experiments.users", "experiments.workspace_roles", "experiments.config_policies"}
    for name in found.keys() - missing:
        # The releases before streams of metrics had two groups.
        expected = [row for row in whole[name] if release != "0.19.11" or not row.startswith("inference")]
        assert found[name] == expected, name


def test_an_import_that_is_killed_and_started_again_equals_an_unbroken_one(
    content: Content, whole: dict[str, list[str]], tmp_path: Path, sample: Sample
) -> None:
    calls: list[int] = [0, 0]
    """Calls so far, and after how many the import is killed; zero for never."""
    running: list[subprocess.Popen[bytes]] = []

    def heard(_path: str) -> None:
        calls[0] += 1
        if calls[0] == calls[1]:
            os.kill(running[-1].pid, signal.SIGKILL)

    with (
        embedded(tmp_path / "h") as cluster,
        serving_old_master(OldMaster(content, heard=heard)) as address,
    ):
        password = tmp_path / "password"
        password.write_text("")
        program = str(Path(sys.executable).parent / "resolute")
        command = [program, "import", "determined", address, "--password-file", str(password)]
        ended = []
        for after in sample.of(range(5, 75), 10):
            calls[:] = [0, after]
            running.append(subprocess.Popen(command, env=cluster.variables(), stdout=subprocess.DEVNULL))
            ended.append(running[-1].wait(timeout=300))
        calls[1] = 0
        imported(cluster, address)
        with cluster.client() as opened:
            assert snapshot(cluster.home, opened) == whole
    assert -signal.SIGKILL in ended


LONG = "0123456789" * 2000 + "\ud800"
"""A line that is longer than one may be here, and ends with half of a character."""


class OddContent(Content):
    """One whose experiment 3 has labels, and trial 9 a checkpoint, of no form that is known.

    Experiment 2 keeps its checkpoints in HDFS. The second line of every trial is long.
    """

    def storage(self, number: int) -> dict[str, Any]:
        hdfs = {"type": "hdfs", "hdfs_url": "http://name:50070", "hdfs_path": "/ck"}
        return hdfs if number == 2 else super().storage(number)

    def experiment(self, number: int, *, whole: bool = False) -> dict[str, Any]:
        told = super().experiment(number, whole=whole)
        return {**told, "labels": 7} if number == 3 else told

    def log(self, trial: int) -> Iterator[dict[str, Any]]:
        for number, told in enumerate(super().log(trial)):
            yield {**told, "log": LONG} if number == 1 else told

    def checkpoints_of(self, trial: int) -> Iterator[dict[str, Any]]:
        for number, told in enumerate(super().checkpoints_of(trial)):
            yield {**told, "metadata": 7} if (trial, number) == (9, 0) else told


def test_what_is_refused_or_odd_keeps_nothing_else_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = {**made_up.PROJECTS[1], "name": "v" * 5000}
    monkeypatch.setattr(made_up, "PROJECTS", (made_up.PROJECTS[0], project, made_up.PROJECTS[2]))
    late = {"id": 9, "name": "late", "archived": True}

    def heard(path: str) -> None:
        if path == "/api/v1/models":
            monkeypatch.setattr(made_up, "WORKSPACES", (*made_up.WORKSPACES[:3], late))

    old = OldMaster(OddContent(experiments=6), heard=heard)
    with embedded(tmp_path / "h") as cluster, serving_old_master(old) as address, cluster.client() as client:
        client.services.access.create_user("Carol", UserRole.VIEWER)
        password = tmp_path / "password"
        password.write_text("", encoding="utf-8-sig")
        command = ("resolute", "import", "determined", address, "--password-file", str(password))
        said = cluster.run(*command, check=False, timeout=300)
        assert said.returncode == 1
        failed = [line for line in said.stderr.splitlines() if line.startswith("not imported: ")]
        assert sorted(line.split(": ")[1] for line in failed) == [
            f"checkpoint {checkpoint_id(9, 10)}",
            *(f"experiment {number}" for number in (1, 3, 4, 5)),
            f"project 'lab/{'v' * 5000}'",
            "user 'carol'",
        ]
        assert {"users: 2 new, 2 here before", "experiments: 3 new", "models: 1 new"} <= set(
            said.stdout.splitlines()
        )
        (unknown,) = (line for line in said.stdout.splitlines() if "cannot be read here, as HDFS" in line)
        assert unknown.endswith("(6 times)")
        assert client.services.workspaces.get("attic").archived
        every = list(client.services.experiments.list(ExperimentFilter(include_archived=True)))
        (two,) = (one for one in every if one.name == "experiment 2")
        trial = next(client.services.trials.list(two.id))
        lines = [line.message for line in client.services.logs.list(trial.uuid)]
        assert "".join(lines[1:-3]) == LONG[:-1] + "?", "no character is left out"
        (incomplete,) = (one for one in every if one.importing)
        assert incomplete.name == "experiment 5"

        mended = OldMaster(Content(experiments=6))
        with serving_old_master(mended) as again:
            command = ("resolute", "import", "determined", again, "--password-file", str(password))
            cluster.run(*command, "--experiment", "5", check=False, timeout=300)
            assert not client.services.experiments.get(incomplete.id).importing
            assert client.services.checkpoints.get(checkpoint_id(9, 20)).steps_completed == 20

            six = next(one for one in every if one.name == "experiment 6")
            client.services.experiments.delete(six.id)
            said = cluster.run(*command, "--experiment", "6", check=False, timeout=300)
            assert (
                "  experiments that were deleted here since they came: they do not come again" in said.stdout
            )
            assert "not imported: experiment 6" not in said.stderr


def test_an_experiment_that_is_not_there_is_said(moved: EmbeddedCluster, content: Content) -> None:
    password = moved.home / "password"
    with serving_old_master(OldMaster(content)) as address:
        command = ("resolute", "import", "determined", address, "--password-file", str(password))
        for options in (("--experiment", "999"), ("--experiment", "999", "--dry-run")):
            said = moved.run(*command, *options, check=False, timeout=300)
            assert said.returncode == 1
            assert "experiment 999: the other cluster has none" in said.stderr


def test_a_trial_goes_on_from_a_moved_checkpoint(
    moved: EmbeddedCluster, client: Client, tmp_path: Path
) -> None:
    weights = weights_after(client, checkpoint_id(5, 30), tmp_path)
    assert weights == json.loads(Content.files(5, 30)["weights.json"])


def test_who_is_no_admin_imports_nothing(moved: EmbeddedCluster, content: Content) -> None:
    with serving_old_master(OldMaster(content)) as address:
        password = moved.home / "password"
        command = ("resolute", "-u", "determined", "import", "determined", address)
        said = moved.run(*command, "--password-file", str(password), check=False, timeout=300)
    assert said.returncode != 0
    assert "admin" in said.stderr
