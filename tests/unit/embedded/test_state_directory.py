"""The home directory of an embedded cluster, over stops and starts."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resolute.client.connection.home import Home
from resolute.errors import FailedPreconditionError
from resolute_embedded.home.state_directory import StateDirectory


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(Home(tmp_path / "home"))


def test_the_port_outlives_the_endpoint_so_that_trials_find_the_next_start(state: StateDirectory) -> None:
    assert state.ports.people.last() == 0
    state.write_endpoint(address="127.0.0.1:4711", cluster_id="c", token="t")
    state.home.endpoint_file.unlink()  # what stopping does
    assert state.ports.people.last() == 4711


def test_one_process_serves_a_home_and_the_other_learns_which(state: StateDirectory) -> None:
    lock = state.lock
    lock.acquire()
    try:
        assert state.lock.is_held()
        with pytest.raises(FailedPreconditionError, match=r"another `resolute up` \(process \d+\) serves"):
            state.lock.acquire()
    finally:
        lock.release()
    assert not state.lock.is_held()


def test_the_token_is_for_its_owner_alone(state: StateDirectory) -> None:
    state.write_endpoint(address="127.0.0.1:1", cluster_id="c", token="secret")
    assert state.home.token_file.read_text() == "secret"
    assert state.home.token_file.stat().st_mode & 0o777 == 0o600


def test_the_cluster_keeps_its_identity(state: StateDirectory) -> None:
    first = state.cluster_id.get()
    assert state.cluster_id.get() == first


def test_what_a_killed_life_was_writing_is_removed_and_nothing_else(state: StateDirectory) -> None:
    state.write_endpoint(address="127.0.0.1:1", cluster_id="c", token="t")
    before = sorted(path.name for path in state.home.path.iterdir())
    script = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from resolute.client.connection.home import Home\n"
        "from resolute_embedded.home.state_directory import StateDirectory\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"state = StateDirectory(Home(Path({str(state.home.path)!r})))\n"
        "state.write_endpoint(address='x:2', cluster_id='c', token='t')\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert len(list(state.home.path.iterdir())) == len(before) + 1
    state.remove_leftovers()
    assert sorted(path.name for path in state.home.path.iterdir()) == before
