"""Carrying out a plan, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.waiting import wait_until

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute.contracts.run.directory import RunDirectory
from resolute_launch.layers import runner
from resolute_launch.layers.plan import LaunchPlan
from resolute_launch.processes.shutdown_sequence import ShutdownStep
from resolute_launch.ranks.failures import first_rank_failure

# Carries out a plan that is given as JSON, as a layer does in its own process.
RUN = """
import json, os, sys
from pathlib import Path
from resolute_launch.layers.plan import LaunchPlan
from resolute_launch.layers.runner import run
fields = json.loads(sys.argv[1])
fields["external_resources"] = tuple(map(Path, fields.get("external_resources", ())))
sys.exit(run(LaunchPlan(**fields), environ=os.environ))
"""
WRAP = [sys.executable, "-m", "resolute_launch.wrap_rank"]


def start(argv: list[str], directory: Path, **fields: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RUN, json.dumps({"argv": argv, **fields})],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RESOLUTE_RUN_DIR": str(directory)},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def written(path: Path) -> str:
    wait_until(lambda: path.exists() and bool(path.read_text()))
    return path.read_text().strip()


def test_success_is_passed_on_and_so_is_the_environment(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo $A; echo $B"]
    fields = {"environment": {"A": "set"}, "defaults": {"B": "default"}}
    assert finish(start(argv, tmp_path, **fields))[:2] == (0, "set\ndefault\n")


def test_without_workers_the_script_takes_the_place_of_the_layer(tmp_path: Path) -> None:
    process = start(["sh", "-c", "echo $$; exit 9"], tmp_path, replaces_process=True)
    assert finish(process)[:2] == (9, f"{process.pid}\n")


@pytest.mark.parametrize("replaces_process", [True, False])
def test_a_program_that_does_not_exist_is_named(tmp_path: Path, replaces_process: bool) -> None:
    code, _, err = finish(start(["no-such-program"], tmp_path, replaces_process=replaces_process))
    assert (code, err) == (127, "cannot run 'no-such-program': No such file or directory\n")


def test_the_rank_that_failed_first_is_shown_and_gives_the_exit_code(tmp_path: Path) -> None:
    first, second = f"{' '.join(WRAP)} 3 sh -c 'echo why >&2; exit 41'", f"{' '.join(WRAP)} 1 sh -c 'exit 42'"
    code, _, err = finish(start(["sh", "-c", f"{first}; {second}; exit 1"], tmp_path))
    assert code == 41
    assert err.endswith("rank 3 failed first; it ended with exit code 41:\nwhy\n")


def test_a_failure_of_an_earlier_launch_says_nothing_of_this_one(tmp_path: Path) -> None:
    environ = {**os.environ, "RESOLUTE_RUN_DIR": str(tmp_path)}
    subprocess.run([*WRAP, "0", "sh", "-c", "exit 5"], check=False, env=environ)
    assert finish(start(["sh", "-c", "exit 6"], tmp_path))[0] == 6


def test_a_launch_that_came_through_leaves_no_failures(tmp_path: Path) -> None:
    argv = ["sh", "-c", f"{' '.join(WRAP)} 0 sh -c 'exit 5'; exit 0"]
    assert finish(start(argv, tmp_path))[0] == 0
    assert first_rank_failure(RunDirectory(tmp_path)) is None


def test_a_later_launch_that_says_nothing_does_not_speak_by_an_earlier_one(tmp_path: Path) -> None:
    environ = {**os.environ, "RESOLUTE_RUN_DIR": str(tmp_path)}
    subprocess.run([*WRAP, "0", "sh", "-c", "exit 5"], check=False, env=environ)
    finish(start(["sh", "-c", "exit 6"], tmp_path))
    # The supervisor asks too when the run has ended.
    assert first_rank_failure(RunDirectory(tmp_path)) is None


class Undying(ProcessTree):
    """Members that the kernel does not let go of, as in a system call to a dead file server."""

    def members(self) -> list[ProcessIdentity]:
        return [ProcessIdentity(pid=1 << 30, start_time=0, boot_id="")]


def test_who_survives_being_killed_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runner, "END_SECONDS", 0.1)
    launch = runner._Launch(
        LaunchPlan(argv=("true",), grace_seconds=0),
        environ={"RESOLUTE_RUN_DIR": str(tmp_path)},
        clock=SYSTEM_CLOCK,
    )
    launch._take(signal.SIGTERM)
    assert launch._shutdown_sequence.due() is ShutdownStep.KILL
    thread = threading.Thread(
        target=launch._wait_for_group, args=(Undying(leader=None, variable=b""),), name="end", daemon=True
    )
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_a_launcher_that_a_signal_ended_ends_like_in_a_shell(tmp_path: Path) -> None:
    assert finish(start(["sh", "-c", "kill -KILL $$"], tmp_path))[0] == 137


def test_a_signal_is_passed_on_once(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: open({str(seen)!r}, "a").write("TERM "))
open({str(tmp_path / "ready")!r}, "w").close()
deadline = time.monotonic() + 20
while time.monotonic() < deadline and not open({str(seen)!r}, "a+").tell():
    time.sleep(0.02)
time.sleep(0.3)
"""
    command = [*WRAP, "0", sys.executable, "-c", script]
    process = start(command, tmp_path)
    wait_until((tmp_path / "ready").exists)
    # As a terminal and a supervisor do it: to the whole group.
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
    assert seen.read_text() == "TERM "


def test_who_does_not_leave_in_time_is_killed_with_all_that_came_of_it(tmp_path: Path) -> None:
    # A stubborn worker in a session of its own, as torchrun and wrap_rank start them.
    stubborn = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"
    command = ["sh", "-c", 'setsid sh -c "$1" & trap "" TERM; wait; wait', "x", stubborn]
    process = start(command, tmp_path, grace_seconds=0.5)
    pid = int(written(tmp_path / "pid"))
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 137
    assert gone(pid)


def test_workers_get_their_grace_when_the_launcher_leaves_first(tmp_path: Path) -> None:
    trap = f"trap 'sleep 0.5; echo saved > {tmp_path}/saved; exit' TERM"
    worker = f"{trap}; echo up > {tmp_path}/up; while :; do sleep 0.05; done"
    process = start(["sh", "-c", 'sh -c "$1" & wait', "x", worker], tmp_path, signals_process_group=True)
    written(tmp_path / "up")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 143
    assert (tmp_path / "saved").exists()


def test_what_a_launcher_leaves_behind_is_ended(tmp_path: Path) -> None:
    worker = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' &"
    command = f"{worker} while [ ! -s {tmp_path}/pid ]; do sleep 0.02; done"
    assert finish(start(["sh", "-c", command], tmp_path))[0] == 0
    assert gone(int(written(tmp_path / "pid")))


@pytest.mark.parametrize("ending", ["exit 0", "exit 3", "kill -KILL $$"])
def test_what_workers_leave_in_memory_is_removed_however_they_end(tmp_path: Path, ending: str) -> None:
    left, others = tmp_path / "left", tmp_path / "others"
    finish(start(["sh", "-c", f"touch {left} {others}; {ending}"], tmp_path, external_resources=[str(left)]))
    assert not left.exists()
    assert others.exists()


def test_what_the_workers_of_a_killed_layer_leave_is_known_to_whoever_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "resolute-left"
    process = start(["sh", "-c", f"touch {left}; exec sleep 60"], tmp_path, external_resources=[str(left)])
    wait_until(left.exists)
    process.kill()
    finish(process)
    assert left.exists()
    RunDirectory(tmp_path).remove_external_resources()
    assert not left.exists()


def test_the_workers_of_a_killed_layer_end_too(tmp_path: Path) -> None:
    process = start([*WRAP, "0", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 60"], tmp_path)
    pid = int(written(tmp_path / "pid"))
    process.kill()
    finish(process)
    wait_until(lambda: gone(pid))


def test_a_dump_of_stacks_does_not_end_the_launch(tmp_path: Path) -> None:
    process = start(["sh", "-c", f"echo up > {tmp_path}/up; sleep 0.5"], tmp_path)
    written(tmp_path / "up")
    process.send_signal(signal.SIGUSR1)
    assert finish(process)[0] == 0


def test_workers_get_by_a_file_what_a_launcher_would_show_in_command_lines(tmp_path: Path) -> None:
    shown = "env; echo token ${#DET_SESSION_TOKEN}"
    wrapped = f"LAUNCHER_SET=1 {sys.executable} -m resolute_launch.wrap_rank 0 sh -c '{shown}'"
    argv = ["sh", "-c", f'env | sed s/^/launcher:/; ls "$RESOLUTE_WORKER_ENVIRONMENT"; {wrapped}']
    secrets = {"DET_SESSION_TOKEN": "s3cret", "LARGE": "x" * 100_000, "LAUNCHER_SET": "0", "HOROVOD_X": "y"}
    code, out, err = finish(start(argv, tmp_path, environment=secrets, environment_by_file=True))
    assert code == 0, err
    launcher, _, worker = out.partition("[rank=0]")
    assert "launcher:HOROVOD_X=y" in launcher
    assert not any(text in launcher for text in ("s3cret", "LARGE"))
    # The rank has it whole, and its log does not.
    assert "[rank=0] token 6\n" in worker
    assert "[rank=0] DET_SESSION_TOKEN=***\n" in worker
    assert "[rank=0] LAUNCHER_SET=1\n" in worker
    assert "RESOLUTE_WORKER_ENVIRONMENT" not in worker
    (left,) = [line for line in launcher.splitlines() if line.startswith(str(tmp_path))]
    assert not Path(left).exists()
