"""A home knows which directory it is; a copy of it is refused until it is adopted."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from resolute.client.connection.home import Home
from resolute.contracts.files.atomic_files import write_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.lock import RunLock
from resolute.errors import FailedPreconditionError
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_embedded.home.backups import adopt_copy, back_up, restore
from resolute_embedded.home.identity import HomeIdentity, record_identity, require_original
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.kit.run_directories.container import containers_in
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.server.bootstrap import upgrade


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    """A home that was served once."""
    made = StateDirectory(Home(tmp_path / "home"))
    for blueprint in BLUEPRINTS:
        upgrade(blueprint, made.databases.url(blueprint.name))
    made.cluster_id.get()
    load_or_create_key(made.signing_key)
    made.write_endpoint(address="127.0.0.1:9", cluster_id=made.cluster_id.get(), token="t")
    require_original(made)
    return made


def copy_of(state: StateDirectory, path: Path) -> StateDirectory:
    shutil.copytree(state.home.path, path, symlinks=True)
    return StateDirectory(Home(path))


def test_a_home_is_served_again_and_a_copy_or_a_moved_one_is_not(
    state: StateDirectory, tmp_path: Path
) -> None:
    require_original(state)
    copy = copy_of(state, tmp_path / "copy")
    with pytest.raises(FailedPreconditionError, match=r"is a copy of the home .*home.*adopt-copy"):
        require_original(copy)
    assert state.home.read_endpoint() is not None
    assert copy.home.read_endpoint() is None, "commands on the copy do not reach the original"
    # In the place of its original it is another directory still.
    shutil.move(state.home.path, tmp_path / "moved")
    shutil.copytree(copy.home.path, state.home.path)
    with pytest.raises(FailedPreconditionError, match="adopt-copy"):
        require_original(state)
    with pytest.raises(FailedPreconditionError, match="was moved"):
        require_original(StateDirectory(Home(tmp_path / "moved")))


def test_the_same_path_on_another_machine_is_another_home(state: StateDirectory) -> None:
    here = replace(HomeIdentity.of(state.home.path), machine="a")
    assert not here.is_same(replace(here, machine="b"))
    assert here.is_same(replace(here, machine=""))
    assert not here.is_same(replace(here, inode=here.inode + 1))


@contextmanager
def running_trial(state: StateDirectory) -> Iterator[subprocess.Popen[bytes]]:
    """A process that a run directory names as that of a trial, with a lock as its supervisor holds it."""
    run = state.runs / "t.1" / "0"
    run.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    write_json(run / "child.json", identity.to_json())
    write_json(run / "supervisor.json", identity.to_json())
    lock = RunLock.acquire(run / "lock")
    try:
        yield process
    finally:
        lock.release()
        process.kill()
        process.wait()


def test_an_adopted_copy_leaves_processes_and_resources_of_the_original_alone(
    state: StateDirectory, tmp_path: Path
) -> None:
    shared = tmp_path / "resource"
    shared.touch()
    with running_trial(state) as process:
        (state.runs / "t.1/0/remains").mkdir()
        (state.runs / "t.1/0/remains/link").symlink_to(shared)
        (state.runs / "t.1/0/spool").mkdir()
        (state.runs / "t.1/0/spool/rank0.metrics").write_bytes(b"reports")
        with pytest.raises(FailedPreconditionError, match=r"1 containers .* it is not a copy"):
            adopt_copy(state, take_over=False)
        copy = copy_of(state, tmp_path / "copy")
        for _ in range(2):
            adopt_copy(copy, take_over=False)
        require_original(copy)
        (container,) = containers_in(copy.runs, "t.1")
        container.kill()
        container.inspect()
        assert process.poll() is None
        assert shared.exists()
        assert (container.run.spool / "rank0.metrics").read_bytes() == b"reports"
    assert copy.ports.people.last() == 0
    assert copy.ports.runs.last() == 0
    assert copy.home.read_endpoint() is None


@pytest.mark.parametrize("take_over", [False, True])
def test_a_new_incarnation_has_an_id_and_a_key_of_its_own_unless_it_takes_over(
    state: StateDirectory, tmp_path: Path, *, take_over: bool
) -> None:
    back_up(state, tmp_path / "backup")
    restored = StateDirectory(Home(tmp_path / "restored"))
    restore(tmp_path / "backup", restored, take_over=take_over)
    copy = copy_of(state, tmp_path / "copy")
    adopt_copy(copy, take_over=take_over)
    for other in (restored, copy):
        require_original(other)
        assert (other.cluster_id.get() == state.cluster_id.get()) is take_over
        assert other.signing_key.exists() is take_over
    require_original(state)


def test_a_restore_that_did_not_finish_is_not_served(state: StateDirectory, tmp_path: Path) -> None:
    back_up(state, tmp_path / "backup")
    (tmp_path / "backup" / "databases" / "experiments.sqlite").write_bytes(b"no database" * 1000)
    restored = StateDirectory(Home(tmp_path / "restored"))
    with pytest.raises(Exception, match="database"):
        restore(tmp_path / "backup", restored, take_over=False)
    with pytest.raises(FailedPreconditionError, match="did not finish; remove the directory"):
        require_original(restored)


def test_a_home_of_before_homes_knew_themselves_is_served(state: StateDirectory) -> None:
    state.home.identity_file.unlink()
    require_original(state)
    assert json.loads(state.home.identity_file.read_text())["path"] == str(state.home.path.resolve())
    record_identity(state)


def test_a_backup_finishes_while_a_service_writes(state: StateDirectory, tmp_path: Path) -> None:
    """A copy in several steps begins again whenever something was written between two of them."""
    path = state.databases.files / "written.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        # Small pages make many steps of a copy that counts them.
        connection.execute("PRAGMA page_size=512")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE filler (content BLOB)")
        connection.executemany("INSERT INTO filler VALUES (zeroblob(1048576))", [()] * 16)
        connection.commit()
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, timeout=60)) as writer:
            writer.execute("PRAGMA synchronous=OFF")
            while not stop.is_set():
                writer.execute("INSERT INTO filler VALUES (zeroblob(1))")
                writer.commit()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        back_up(state, tmp_path / "backup")
    finally:
        stop.set()
        thread.join()
    with closing(sqlite3.connect(tmp_path / "backup" / "databases" / "written.sqlite")) as copy:
        assert copy.execute("PRAGMA quick_check").fetchone() == ("ok",)
        assert copy.execute("SELECT count(*) FROM filler").fetchone()[0] >= 16
