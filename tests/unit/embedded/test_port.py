"""Which port a start takes, when the last one is free, taken, or waited at."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.ports import free_port

from resolute.client.connection.home import Home
from resolute.contracts.run.lock import RunLock
from resolute.errors import UnavailableError
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.network.port import choose_port, choose_runs_port


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(Home(tmp_path / "home"))


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def taken(state: StateDirectory) -> Iterator[int]:
    """The last port of the home, at which another program listens now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        state.write_endpoint(address=f"127.0.0.1:{port}", cluster_id="c", token="t")
        yield port


@pytest.fixture
def live_run(state: StateDirectory) -> Iterator[None]:
    """A container whose supervisor lives."""
    folder = state.runs / "allocation" / "0"
    folder.mkdir(parents=True)
    lock = RunLock.acquire(folder / "lock")
    yield
    lock.release()


def test_the_last_port_is_taken_again(state: StateDirectory, held: ExitStack) -> None:
    port = free_port()
    state.write_endpoint(address=f"127.0.0.1:{port}", cluster_id="c", token="t")
    assert choose_port(state, held) == port


def test_another_is_taken_when_the_last_one_is_and_nobody_looks_there(
    state: StateDirectory, held: ExitStack, taken: int
) -> None:
    (state.runs / "ended" / "0").mkdir(parents=True)
    (state.runs / "ended" / "0" / "lock").touch()
    assert choose_port(state, held) not in {0, taken}


@pytest.mark.usefixtures("live_run")
def test_trials_that_look_at_a_taken_port_are_not_stranded_silently(
    state: StateDirectory, held: ExitStack, taken: int
) -> None:
    with pytest.raises(UnavailableError, match=rf"port {taken} is taken .* 1 containers .* --port N"):
        choose_port(state, held)


@pytest.mark.usefixtures("live_run", "taken")
def test_who_names_a_port_gets_it_and_is_told_who_looks_elsewhere(
    state: StateDirectory, held: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose_port(state, held, asked=4711) == 4711
    assert "look for the cluster at its last port" in capsys.readouterr().out


@pytest.mark.usefixtures("live_run")
def test_a_run_that_looks_at_its_own_port_leaves_the_other_free_to_move(
    state: StateDirectory, held: ExitStack, taken: int
) -> None:
    state.ports.runs.write(4712)
    assert choose_port(state, held) not in {0, taken}


@pytest.mark.usefixtures("live_run")
def test_runs_find_the_services_at_the_port_of_the_last_start(
    state: StateDirectory, held: ExitStack, taken: int
) -> None:
    port = free_port()
    state.ports.runs.write(port)
    assert choose_runs_port(state, held, abandon=False, taken=0) == port
    state.ports.runs.write(taken)
    with pytest.raises(UnavailableError, match=rf"port {taken} is taken .* 1 containers .* --port N"):
        choose_runs_port(state, held, abandon=False, taken=0)
    assert choose_runs_port(state, held, abandon=True, taken=0) not in {0, taken}


def test_runs_get_a_port_that_people_have_not(state: StateDirectory, held: ExitStack) -> None:
    port = free_port()
    state.ports.runs.write(port)
    assert choose_runs_port(state, held, abandon=False, taken=port) not in {0, port}


def test_a_chosen_port_is_nobody_elses_until_the_server_listens(
    state: StateDirectory, held: ExitStack
) -> None:
    port = choose_port(state, held)
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))
    with contextlib.closing(socket.socket()) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gRPC's is
        server.bind(("127.0.0.1", port))
        server.listen()
        held.close()
        socket.create_connection(("127.0.0.1", port)).close()
