"""Nobody but its owner gets into a home, whatever the umask is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError
from resolute_embedded.home.private_home import make_private, open_private
from resolute_embedded.home.state_directory import StateDirectory
from resolute_serving.database.engine import create_engine


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(Home(tmp_path / "parent" / "home"))


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def files_of_a_database(state: StateDirectory) -> dict[str, int]:
    """Writes to a database; returns the modes of its files while it is open."""
    engine = create_engine(state.databases.url("logs"), name="logs", writes=True)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS t (x)"))
        found = {path.name: mode(path) for path in state.databases.files.iterdir()}
    engine.dispose()
    return found


@pytest.mark.usefixtures("umask")
def test_a_new_home_and_its_databases_are_private(state: StateDirectory) -> None:
    make_private(state)
    assert {mode(path) for path in (state.home.path, state.databases.files, state.data)} == {0o700}
    found = files_of_a_database(state)
    assert found == dict.fromkeys(("logs.sqlite", "logs.sqlite-wal", "logs.sqlite-shm"), 0o600)
    with open(state.output, "wb", opener=open_private):
        assert mode(state.output) == 0o600


@pytest.mark.usefixtures("umask")
def test_a_home_that_was_open_is_closed(state: StateDirectory) -> None:
    state.databases.files.mkdir(parents=True)
    files = [state.databases.files / f"logs.sqlite{suffix}" for suffix in ("", "-wal", "-shm")]
    for path in (*files, state.log):
        path.touch()
        path.chmod(0o666)
    for path in (state.home.path, state.databases.files):
        path.chmod(0o777)
    make_private(state)
    assert {mode(state.home.path), mode(state.databases.files)} == {0o700}
    assert mode(state.log) == 0o600
    assert set(files_of_a_database(state).values()) == {0o600}


def test_a_directory_that_others_use_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "of somebody else").mkdir(parents=True)
    shared.chmod(0o777)
    sticky = tmp_path / "sticky"
    sticky.mkdir()
    sticky.chmod(0o1777)
    for home in (shared, sticky):
        before = home.stat().st_mode
        with pytest.raises(FailedPreconditionError, match="let RESOLUTE_HOME name a directory of your own"):
            make_private(StateDirectory(Home(home)))
        assert home.stat().st_mode == before
        assert not (home / "databases").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_the_home_of_another_user_is_refused(state: StateDirectory) -> None:
    state.databases.files.mkdir(parents=True)
    os.chown(state.home.path, 4711, 4711)
    with pytest.raises(FailedPreconditionError, match=r"belongs to user 4711.*name a directory of your own"):
        make_private(state)


def test_a_file_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FailedPreconditionError, match="is not a directory"):
        make_private(StateDirectory(Home(tmp_path / "file")))


def test_a_home_that_cannot_be_made_names_what_to_do() -> None:
    with pytest.raises(FailedPreconditionError, match=r"cannot make /proc/home: .*; let RESOLUTE_HOME name"):
        make_private(StateDirectory(Home(Path("/proc/home"))))
