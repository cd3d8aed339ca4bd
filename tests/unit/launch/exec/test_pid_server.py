"""A command that is watched through its workers, with real processes, by the names that programs know."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.ports import free_port
from support.waiting import wait_until

COMPAT = Path(__file__).resolve().parents[4] / "compat"
SERVER = [sys.executable, "-m", "determined.exec.pid_server"]
CLIENT = f"{sys.executable} -m determined.exec.pid_client"
SIGNALLED = 128 + signal.SIGTERM


@pytest.fixture
def address(tmp_path: Path) -> str:
    return str(tmp_path / "socket")


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*SERVER, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(COMPAT)},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def written(path: Path) -> int:
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("kind", ["path", "port", "host and port"])
def test_a_command_whose_workers_end_well_ends_as_it_would_alone(address: str, kind: str) -> None:
    port = free_port()
    at = {"path": address, "port": str(port), "host and port": f"localhost:{port}"}[kind]
    worker = f"{CLIENT} {at} sh -c 'echo worked'"
    code, out, err = finish(start(at, "2", "--", "sh", "-c", f"{worker} & {worker}; wait; exit 7"))
    assert (code, out, err) == (7, "worked\nworked\n", "")


def test_when_a_worker_is_killed_the_command_and_its_other_workers_are_ended(
    address: str, tmp_path: Path
) -> None:
    worker = f"{CLIENT} {address} sh -c 'echo $$ > {tmp_path}/%s; exec sleep 60' &"
    server = start(address, "2", "sh", "-c", f"{worker % 'a'} {worker % 'b'} wait")
    victim, other = written(tmp_path / "a"), written(tmp_path / "b")
    os.kill(victim, signal.SIGKILL)
    assert finish(server)[0] == SIGNALLED
    wait_until(lambda: gone(other))


@pytest.mark.parametrize(
    ("options", "command", "exit_code"),
    [
        # What the command makes of the signal is its exit code, unless that hides the failure.
        ([], "trap 'exit 5' TERM; {worker}; sleep 60 & wait", 5),
        ([], "trap 'exit 0' TERM; {worker}; sleep 60 & wait", 78),
        (["--on-fail", "WAIT"], "{worker}; true", 79),
        (["-x", "INT"], "trap 'exit 6' INT; {worker}; sleep 60 & wait", 6),
        (["--grace-period", "0.3"], "trap '' TERM; {worker}; while :; do sleep 0.1; done", 137),
    ],
)
def test_a_failure_is_never_an_exit_code_of_zero(
    address: str, options: list[str], command: str, exit_code: int
) -> None:
    line = command.format(worker=f"{CLIENT} {address} false")
    assert finish(start(*options, address, "1", "sh", "-c", line))[0] == exit_code


def test_when_all_workers_have_ended_well_a_command_without_end_can_be_ended(address: str) -> None:
    words = ["--on-exit", "SIGTERM", "--signal-children", address, "1"]
    command = f"{CLIENT} {address} true; sleep 60 >/dev/null 2>&1 & wait; wait"
    assert finish(start(*words, "sh", "-c", command))[0] == SIGNALLED


def test_signals_are_passed_on(address: str) -> None:
    server = start(address, "1", "sh", "-c", "trap 'exit 9' TERM; echo up; while :; do sleep 0.05; done")
    assert server.stdout is not None
    assert server.stdout.readline() == "up\n"
    server.terminate()
    assert finish(server)[0] == 9


@pytest.mark.parametrize(
    ("words", "message", "exit_code"),
    [
        (["nowhere", "1", "true"], "argument ADDR: invalid PidAddress value: 'nowhere'", 2),
        (
            ["-x", "SIGNOTHING", "1", "1", "true"],
            "argument -x/--on-fail: 'SIGNOTHING' is neither WAIT nor the name of a signal",
            2,
        ),
        (["1", "1"], "empty command is not allowed", 2),
        (["/no/such/folder/socket", "1", "true"], "cannot listen at /no/such/folder/socket: No such file", 1),
        (["{address}", "1", "no-such-program"], "cannot run 'no-such-program': No such file", 127),
    ],
)
def test_a_wrong_command_line_says_what_is_wrong(
    address: str, words: list[str], message: str, exit_code: int
) -> None:
    code, _, err = finish(start(*[word.format(address=address) for word in words]))
    assert code == exit_code
    assert message in err


def test_a_worker_that_nobody_watches_is_not_run(address: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*CLIENT.split(), address, "touch", str(tmp_path / "ran")],
        env={**os.environ, "PYTHONPATH": str(COMPAT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"no pid_server listens at {address}" in done.stderr
    assert not (tmp_path / "ran").exists()
