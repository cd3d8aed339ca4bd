from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import make_spec

from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute.info import ClusterInfo
from resolute.runtime.environment_variables import configured_variables
from resolute_launch.container.environment import (
    cleaned,
    rendezvous_environment,
    task_environment,
)
from resolute_launch.container.task import Task
from resolute_launch.container.task_info import cluster_info, run_identity, single_container_rendezvous
from resolute_launch.installation import INTERPRETER, compat_path


def make_task(path: Path, *, config: dict[str, Any] | None = None, **changes: Any) -> Task:
    run = RunDirectory(path)
    run.prepare()
    order: dict[str, Any] = {
        "allocation_id": "a",
        "master": "127.0.0.1:8080",
        "token": "t",
        "slot_ids": (3, 1),
        "compat_path": "/compat",
        "python": "/venv/bin/python",
    }
    for key in list(changes):
        if key in LaunchOrder.__dataclass_fields__:
            order[key] = changes.pop(key)
    return Task(make_spec(["x"], config=config or {}, **changes), LaunchOrder(**order), run)


def environment_of(task: Task, base: dict[str, str] | None = None) -> dict[str, str]:
    info = cluster_info(task, rendezvous=single_container_rendezvous(task.order))
    return task_environment(base or {}, task=task, info=info, scratch=Path("/scratch"))


def test_an_enclosing_run_leaves_no_trace_but_the_users_own_settings() -> None:
    users = {"RESOLUTE_SPOOL_LIMIT": "5", "RESOLUTE_CHECKPOINT_CACHE_DIR": "/scratch", "HOME": "/me"}
    assert cleaned({"DET_TRIAL_ID": "1", "RESOLUTE_RUN_DIR": "/x", **users}) == users


def test_the_trials_interpreter_and_the_compat_package_come_first(tmp_path: Path) -> None:
    environment = environment_of(make_task(tmp_path), {"PATH": "/bin", "PYTHONPATH": "/mine"})
    assert environment["PATH"] == "/venv/bin:/bin"
    assert environment["PYTHONPATH"] == f"/compat:/mine:{INTERPRETER}"
    assert "PYTHONPATH" in environment_of(make_task(tmp_path))


def test_the_config_may_set_the_path_of_modules_but_not_take_the_compat_package_away(tmp_path: Path) -> None:
    config = {"environment": {"environment_variables": ["PYTHONPATH=/theirs", "DET_TRIAL_ID=fake"]}}
    environment = environment_of(make_task(tmp_path, config=config), {"PYTHONPATH": "/mine"})
    assert environment["PYTHONPATH"] == f"/compat:/theirs:{INTERPRETER}"
    assert environment["DET_TRIAL_ID"] == "12"


@pytest.mark.parametrize(("grace", "told"), [({}, "15"), ({"termination_grace": 0.5}, "0.5")])
def test_the_layers_are_told_the_grace_of_the_config_else_of_the_machine(
    tmp_path: Path, grace: dict[str, float], told: str
) -> None:
    config = {"environment": {"environment_variables": ["RESOLUTE_TERMINATION_GRACE=99"]}}
    task = make_task(tmp_path, config=config, **grace)
    assert environment_of(task, {"RESOLUTE_TERMINATION_GRACE": "77"})["RESOLUTE_TERMINATION_GRACE"] == told


def test_the_master_is_spelled_as_every_era_read_it(tmp_path: Path) -> None:
    environment = environment_of(make_task(tmp_path))
    assert environment["DET_MASTER"] == "127.0.0.1:8080"
    assert environment["DET_MASTER_ADDR"] == environment["DET_MASTER_HOST"] == "127.0.0.1"
    assert environment["DET_MASTER_PORT"] == "8080"
    assert environment["DET_UNIQUE_PORT_OFFSET"] == "1"


@pytest.mark.parametrize(
    ("order", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"tls": ClientTls().to_json()}, "https://127.0.0.1:8080"),
        ({"http_url": "http://127.0.0.1:8087"}, "http://127.0.0.1:8087"),
    ],
)
def test_the_url_of_the_master_is_that_of_the_gateway_where_there_is_one(
    tmp_path: Path, order: dict[str, Any], url: str
) -> None:
    task = make_task(tmp_path, **order)
    info = cluster_info(task, rendezvous=single_container_rendezvous(task.order))
    assert info.master_url == url
    assert info.connection is not None
    assert info.connection.tls is ("tls" in order)


def test_a_trial_is_told_whom_to_trust(tmp_path: Path) -> None:
    task = make_task(tmp_path, tls=ClientTls(authority=b"PEM", server_name="cluster").to_json())
    environment = environment_of(task)
    assert environment["DET_USE_TLS"] == "true"
    assert environment["DET_MASTER_CERT_NAME"] == "cluster"
    assert Path(environment["DET_MASTER_CERT_FILE"]).read_bytes() == b"PEM"
    plain = environment_of(make_task(tmp_path / "plain"))
    assert plain["DET_USE_TLS"] == "false"
    assert "DET_MASTER_CERT_FILE" not in plain


@pytest.mark.parametrize(
    ("variables", "kind", "expected"),
    [
        (["A=1", "B=x=y", "C="], "cpu", {"A": "1", "B": "x=y", "C": ""}),
        (["A=1", "A=2"], "cpu", {"A": "2"}),
        (["FROM_AGENT", "NOT_THERE"], "cpu", {"FROM_AGENT": "yes"}),
        ({"cpu": ["A=cpu"], "cuda": ["A=cuda"]}, "cpu", {"A": "cpu"}),
        ({"cpu": ["A=cpu"], "cuda": ["A=cuda"]}, "gpu", {"A": "cuda"}),
        ({"gpu": ["A=old"]}, "gpu", {"A": "old"}),
        ({}, "cpu", {}),
        (None, "cpu", {}),
    ],
)
def test_variables_of_the_config_are_those_of_the_device_class(
    variables: Any, kind: str, expected: dict[str, str]
) -> None:
    config = {"environment": {"environment_variables": variables}}
    assert configured_variables(config, slot_kind=kind, agent={"FROM_AGENT": "yes"}) == expected


def test_a_config_without_an_environment_has_no_variables() -> None:
    assert configured_variables({}, slot_kind="cpu", agent={}) == {}
    assert configured_variables({"environment": None}, slot_kind="cpu", agent={}) == {}


def test_values_that_no_program_could_be_started_with_are_left_to_the_info_files(tmp_path: Path) -> None:
    task = make_task(tmp_path, config={"data": "é" * 60_000})
    environment = environment_of(task)
    assert "DET_EXPERIMENT_CONFIG" not in environment
    assert "DET_HPARAMS" in environment


def test_the_collectives_use_the_first_two_ports_and_torch_the_third() -> None:
    assert rendezvous_environment([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], key="k") == {
        "RESOLUTE_COLLECTIVE_KEY": "k",
        "RESOLUTE_COLLECTIVE_PORTS": "1,2",
        "C10D_PORT": "3",
        "RESOLUTE_CONTAINER_PORTS": "4,9",
    }


def test_temporary_files_have_a_place_of_their_own_unless_the_config_names_one(tmp_path: Path) -> None:
    assert environment_of(make_task(tmp_path), {"TMPDIR": "/agents"})["TMPDIR"] == "/scratch"
    config = {"environment": {"environment_variables": ["TMPDIR=/theirs"]}}
    assert environment_of(make_task(tmp_path, config=config))["TMPDIR"] == "/theirs"


def test_the_info_files_read_back_as_what_was_written(tmp_path: Path) -> None:
    task = make_task(tmp_path, time_driven=True, config={"data": {"x": 1}, "debug": True})
    cluster_info(task, rendezvous=single_container_rendezvous(task.order)).write(task.run.info)
    info = ClusterInfo._from_file(task.run.info)
    assert info is not None
    assert info.user_data == {"x": 1}
    assert info.trial.hparams == {"lr": 0.1, "layers": 2}
    assert info.slot_ids == [3, 1]
    assert info.container_slot_counts == [2]
    assert info.connection is not None
    assert info.connection.time_driven
    assert info.connection.trial_id == task.spec.trial_id


def test_the_spools_know_whose_they_are(tmp_path: Path) -> None:
    searcher = {"metric": "acc", "smaller_is_better": False, "time_metric": "batches"}
    task = make_task(
        tmp_path, config={"searcher": searcher}, time_driven=True, container_count=2, container_rank=1
    )
    identity = run_identity(task)
    assert (identity.searcher_metric, identity.smaller_is_better) == ("acc", False)
    assert identity.time_metric == "batches"
    assert identity.container == "1"
    assert run_identity(make_task(tmp_path, config={"searcher": searcher})).time_metric == ""


def test_the_compat_package_is_found_beside_the_launcher() -> None:
    assert (compat_path() / "determined" / "__init__.py").exists()


def test_secrets_are_files_and_those_that_the_config_wants_variables(tmp_path: Path) -> None:
    config = {"environment": {"secrets": ["key", "HUB=hub", "DET_TRIAL_ID=hub"]}}
    task = make_task(tmp_path, config=config)
    task.run.write_secrets({"key": "a private key", "hub": "a token of ä hub\r\n"})
    environment = environment_of(task, {"HUB": "of the supervisor"})
    assert environment["HUB"] == "a token of ä hub\r\n"
    assert environment["DET_TRIAL_ID"] == "12"
    assert Path(environment["RESOLUTE_SECRETS_DIR"], "key").read_text() == "a private key"
    assert "a private key" not in environment.values()
    assert "RESOLUTE_SECRETS_DIR" not in environment_of(make_task(tmp_path))
