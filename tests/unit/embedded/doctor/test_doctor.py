"""The doctor finds what was broken on purpose, and tells what to do about it."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from support.backends import missing
from support.ports import free_port

from resolute.client.connection.home import Home
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.doctor import Finding, Status, run_checks
from resolute_embedded.doctor.home import check_home
from resolute_embedded.home.identity import record_identity
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.server.bootstrap import upgrade


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The databases of a home that was served once."""
    state = StateDirectory(Home(tmp_path_factory.mktemp("pristine")))
    for blueprint in BLUEPRINTS:
        upgrade(blueprint, state.databases.url(blueprint.name))
    return state.home.path


@pytest.fixture
def state(tmp_path: Path, pristine: Path) -> StateDirectory:
    # Letters that mean something in URLs.
    home = tmp_path / "home #1 %41"
    (home / "databases").mkdir(parents=True, mode=0o700)
    for database in pristine.glob("databases/*.sqlite"):
        (home / "databases" / database.name).write_bytes(database.read_bytes())
    home.chmod(0o700)
    made = StateDirectory(Home(home))
    made.write_endpoint(address="127.0.0.1:9", cluster_id="c", token="t")
    made.home.endpoint_file.unlink()
    made.checkpoints.mkdir()
    return made


def found(state: StateDirectory, subject: str) -> Finding:
    (finding,) = [one for one in run_checks(state) if one.subject == subject]
    return finding


def test_a_read_only_home_is_a_fault_and_ends_no_other_check(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_open = os.open

    def open_to_read(path: str, flags: int, *rest: int) -> int:
        return refuse() if flags & (os.O_WRONLY | os.O_RDWR) else really_open(path, flags, *rest)

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (state.home.path / "lock").touch()
    monkeypatch.setattr(os, "open", open_to_read)
    # Such a file system refuses to remove even what is not there.
    monkeypatch.setattr(Path, "unlink", refuse)
    faults = [one for one in check_home(state) if one.status is Status.FAULT]
    assert [one.subject for one in faults] == ["home", "storage"]
    assert all("cannot be written: Read-only file system" in one.detail for one in faults)


def test_whole_home_has_nothing_wrong_with_it_and_is_left_as_it_was(state: StateDirectory) -> None:
    before = sorted(path.name for path in state.home.path.rglob("*") if "sqlite" not in path.name)
    findings = list(run_checks(state))
    assert not [one for one in findings if one.status is Status.FAULT]
    assert {one.subject for one in findings} >= {"versions", "home", "storage", "lock", "clock", "slots"}
    assert sum(one.subject.startswith("database of") for one in findings) == 5
    assert sorted(p.name for p in state.home.path.rglob("*") if "sqlite" not in p.name) == before


def test_home_that_was_never_used_is_no_fault(tmp_path: Path) -> None:
    findings = list(run_checks(StateDirectory(Home(tmp_path / "none"))))
    assert not [one for one in findings if one.status is Status.FAULT]
    assert not (tmp_path / "none").exists()


def test_engine_that_does_not_answer_is_a_fault_with_its_own_words(state: StateDirectory) -> None:
    if shutil.which("ssh") is None:
        missing("there is no ssh: tools/install_engines.sh installs it")
    (state.home.path / "resource-pools.yaml").write_text(
        "resource_pools: [{pool_name: gpu, engine: hpc}]\n"
        "engines: {hpc: {type: slurm, directory: /none, login: nobody@login.invalid}}\n"
    )
    finding = found(state, "engine hpc")
    assert finding.status is Status.FAULT
    assert "login node nobody@login.invalid cannot be reached" in finding.detail
    assert "docs/slurm.md" in finding.remedy


def test_settings_of_engines_that_are_wrong_are_a_fault(state: StateDirectory) -> None:
    (state.home.path / "resource-pools.yaml").write_text("resource_pools: [{pool_name: a, engine: none}]\n")
    assert "resource_pools[0].engine" in found(state, "engines").detail


def test_every_bad_finding_has_a_remedy(state: StateDirectory) -> None:
    (state.databases.files / "logs.sqlite").write_bytes(b"no database" * 1000)
    state.home.token_file.chmod(0o644)
    bad = [one for one in run_checks(state) if one.status is not Status.OK]
    assert len(bad) >= 2
    assert all(one.remedy for one in bad)


def test_damaged_database_is_found(state: StateDirectory) -> None:
    path = state.databases.files / "metrics.sqlite"
    content = bytearray(path.read_bytes())
    content[4096:12288] = os.urandom(8192)
    path.write_bytes(content)
    finding = found(state, "database of metrics")
    assert finding.status is Status.FAULT
    assert "restore" in finding.remedy


def test_database_of_another_version_is_found(state: StateDirectory) -> None:
    with closing(sqlite3.connect(state.databases.files / "searcher.sqlite")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
        connection.commit()
    finding = found(state, "database of searcher")
    assert (finding.status, "0000" in finding.detail) == (Status.WARNING, True)


def test_token_that_others_can_read_is_found(state: StateDirectory) -> None:
    state.home.token_file.chmod(0o640)
    finding = found(state, "secrets")
    assert finding.status is Status.FAULT
    assert finding.remedy == f"chmod 600 {state.home.token_file}"


def test_clock_that_went_back_is_found(state: StateDirectory) -> None:
    with closing(sqlite3.connect(state.databases.files / "experiments.sqlite")) as connection:
        values = (time.time() + 3600.0, "ada", "create", "experiment 1", "{}")
        connection.execute(
            "INSERT INTO audit (time, actor, action, resource, detail) VALUES (?, ?, ?, ?, ?)", values
        )
        connection.commit()
    assert found(state, "clock").status is Status.FAULT


def test_a_copied_home_and_what_it_inherited_are_found(state: StateDirectory) -> None:
    record_identity(state)
    assert not [one for one in run_checks(state) if one.subject == "identity of the home"]
    copy = StateDirectory(Home(state.home.path.with_name("copy")))
    shutil.copytree(state.home.path, copy.home.path)
    finding = found(copy, "identity of the home")
    assert (finding.status, "adopt-copy" in finding.remedy) == (Status.FAULT, True)
    with closing(sqlite3.connect(copy.databases.files / "checkpoints.sqlite")) as connection:
        connection.execute(
            "INSERT INTO checkpoints (checkpoint_id, state, trial_id, experiment_id, run, workspace, storage,"
            " metadata, manifest_digest, manifest_bytes, steps_completed, total_size, create_time, list_time,"
            " removal_attempts, removal_claim, inherited)"
            " VALUES ('c', 'completed', '', '', 0, '', '{}', '{}', '', 0, 0, 0, 0, 0, 0, 0, 1)"
        )
        connection.commit()
    assert "the files of 1 are kept" in found(copy, "inherited checkpoints").detail


@pytest.mark.parametrize("own", [False, True], ids=["of both", "of runs"])
def test_port_that_another_program_took_is_found(state: StateDirectory, *, own: bool) -> None:
    of_people = free_port()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        state.write_endpoint(address=f"127.0.0.1:{of_people if own else taken}", cluster_id="c", token="t")
        if own:
            state.ports.runs.write(taken)
        state.home.endpoint_file.unlink()
        assert found(state, "port").status is Status.WARNING


def test_cluster_that_holds_the_lock_and_does_not_answer_is_found(state: StateDirectory) -> None:
    lock = state.lock
    lock.acquire()
    try:
        assert found(state, "lock").status is Status.WARNING
        state.write_endpoint(address="127.0.0.1:9", cluster_id="c", token="t")
        assert found(state, "lock").status is Status.OK
        assert found(state, "services").status is Status.FAULT
    finally:
        lock.release()
