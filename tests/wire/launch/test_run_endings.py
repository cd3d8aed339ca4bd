"""How runs end: by themselves, on request, and when nobody answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised
from support.waiting import wait_until

from resolute.api.experiments.v1.allocations_service_pb2 import EARLY_EXIT_REASON_INVALID_HP
from resolute.api.preemption.v1.signal_pb2 import SIGNAL_REASON_MACHINE, SIGNAL_REASON_USER
from resolute.contracts.files.atomic_files import read_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord

COOPERATIVE = """
import time
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.flags import Flags
flags = Flags(RunDirectory.from_environment().flags_file)
print("training", flush=True)
while not flags.preempt:
    time.sleep(0.01)
flags.acknowledge()
print("saved", flags.reason, flags.revision, flush=True)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
print("training", flush=True)
while True:
    time.sleep(0.1)
"""
SLOW_TO_SAVE = """
import signal, sys, time
def save(*_):
    time.sleep(1.5)
    print("saved", flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, save)
print("training", flush=True)
while True:
    time.sleep(0.1)
"""
FILES = {"good.py": COOPERATIVE, "stubborn.py": STUBBORN, "slow.py": SLOW_TO_SAVE}
TORCHRUN = [sys.executable, "-m", "resolute_launch.torch_distributed", "--", "python3", "slow.py"]


def test_an_exit_0_is_reported_with_nothing_to_add(tmp_path: Path) -> None:
    with control_plane("echo done") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert (exit_.exit_code, exit_.acknowledged, exit_.failure) == (0, False, "")
        assert exit_.end_time.seconds > 0
        assert plane.text() == ["done"]


def test_the_record_is_on_disk_and_every_line_has_arrived_before_the_exit_is_reported(
    tmp_path: Path,
) -> None:
    with control_plane("for i in $(seq 5000); do echo line $i; done; exit 3") as plane:
        record = RunDirectory(tmp_path / "run" / "0").exit_file
        seen: list[tuple[ExitRecord | None, int]] = []
        plane.on_exit = lambda: seen.append((ExitRecord.read(record), len(plane.all_lines())))
        with supervised(tmp_path, plane) as run:
            assert run.wait() == 0
        (known, count) = seen[0]
        assert known is not None
        assert known.exit_code == 3
        assert count == 5000
        assert [line.message for line in plane.all_lines()] == [f"line {i}" for i in range(1, 5001)]


def test_a_failure_is_told_by_its_last_words(tmp_path: Path) -> None:
    script = """
import sys
print("progress")
for i in range(100):
    print("note", i, file=sys.stderr)
raise ValueError("bad lr")
"""
    with (
        control_plane(["python3", "t.py"], files={"t.py": script}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 1
        assert not exit_.failed_before_entrypoint
        assert exit_.failure.startswith("the entrypoint ended with exit code 1\n")
        assert exit_.failure.endswith("ValueError: bad lr")
        assert len(exit_.failure.splitlines()) <= 41
        assert "progress" not in exit_.failure


def test_of_several_ranks_the_first_that_failed_speaks(tmp_path: Path) -> None:
    wrapped = "python3 -m resolute_launch.wrap_rank"
    script = f"""
        {wrapped} 0 python3 -c "import time; time.sleep(30)" & first=$!
        {wrapped} 1 python3 -c "raise SystemExit('rank one broke')"
        kill -TERM $first; wait $first; exit 1
    """
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert plane.exits[0].failure == "rank 1 ended with exit code 1\nrank one broke"
        assert {line.rank for line in plane.all_lines() if line.message == "rank one broke"} == {1}


def test_a_signal_that_killed_the_entrypoint_is_named(tmp_path: Path) -> None:
    with control_plane("kill -SEGV $$") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 128 + signal.SIGSEGV
        assert "SIGSEGV" in plane.exits[0].failure


def test_a_preempted_run_saves_acknowledges_and_leaves(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "good.py"], files=FILES) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True, reason=SIGNAL_REASON_USER)
        plane.wait_for(lambda: plane.exits)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert (exit_.exit_code, exit_.acknowledged, exit_.failure) == (0, True, "")
        assert f"saved {SIGNAL_REASON_USER} 1" in plane.text()
        assert any("asked to checkpoint and exit (reason: user)" in line for line in plane.text(stdtype=""))


def test_the_lease_carries_the_signal_when_no_watch_does(tmp_path: Path) -> None:
    with control_plane(["python3", "good.py"], files=FILES, lease_ttl=1.0) as plane:
        plane.watches_answer = False
        with supervised(tmp_path, plane) as run:
            plane.wait_for(lambda: "training" in plane.text())
            plane.send_signal(preempt=True, reason=SIGNAL_REASON_USER)
            assert run.wait() == 0
            assert plane.exits[0].acknowledged


def test_an_acknowledgement_is_passed_on_while_the_run_still_saves(tmp_path: Path) -> None:
    slow = COOPERATIVE + "time.sleep(60)\n"
    with (
        control_plane(["python3", "slow.py"], files={"slow.py": slow}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True)
        plane.wait_for(lambda: plane.acknowledged == [1])
        assert run.process.poll() is None
        plane.send_signal(preempt=True, kill=True)
        assert run.wait() == 0


def test_who_does_not_leave_in_time_is_terminated_then_killed(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "stubborn.py"], files=FILES, preemption_timeout=0.5) as plane,
        supervised(tmp_path, plane, term_grace_seconds=0.5) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 137
        assert not exit_.acknowledged
        assert "missed the deadline" in exit_.failure
        assert "no" in plane.text()


def test_who_saves_only_at_sigterm_has_left_because_of_the_signal(tmp_path: Path) -> None:
    script = "trap 'echo saved; exit 0' TERM; echo training; while true; do sleep 0.05; done"
    with (
        control_plane(script, preemption_timeout=0.3) as plane,
        supervised(tmp_path, plane, term_grace_seconds=10) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True)
        assert run.wait() == 0
        assert (plane.exits[0].exit_code, plane.exits[0].acknowledged) == (0, True)


def test_the_grace_of_the_config_counts_before_the_machine_s_when_it_is_longer(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"preemption_timeout": 0.1, "termination_grace": 60}
    with (
        control_plane(["python3", "slow.py"], files=FILES, **terms) as plane,
        supervised(tmp_path, plane, term_grace_seconds=0.3) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True)
        assert run.wait() == 0
        assert "saved" in plane.text()
        assert (plane.exits[0].exit_code, plane.exits[0].acknowledged) == (0, True)


def test_the_grace_of_the_config_counts_before_the_machine_s_when_it_is_shorter(tmp_path: Path) -> None:
    terms: dict[str, Any] = {"preemption_timeout": 0.1, "termination_grace": 0.3}
    with (
        control_plane(["python3", "slow.py"], files=FILES, **terms) as plane,
        supervised(tmp_path, plane, term_grace_seconds=60) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(preempt=True)
        assert run.wait() == 0
        assert "saved" not in plane.text()
        assert plane.exits[0].exit_code == 137


@pytest.mark.parametrize(("grace", "saves"), [(60.0, True), (1.0, False)])
def test_the_grace_of_the_config_reaches_the_ranks_of_a_launcher(
    tmp_path: Path, grace: float, saves: bool
) -> None:
    terms: dict[str, Any] = {"preemption_timeout": 0.1, "termination_grace": grace}
    with control_plane(TORCHRUN, files=FILES, **terms) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "training" in plane.text(), seconds=60)
        plane.send_signal(preempt=True)
        assert run.wait(60) == 0
        assert ("saved" in plane.text()) is saves


def test_a_kill_ends_all_at_once(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "stubborn.py"], files=FILES) as plane,
        supervised(tmp_path, plane, term_grace_seconds=60) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        plane.send_signal(kill=True, reason=SIGNAL_REASON_USER)
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 137
        assert plane.exits[0].failure == "it was killed on request"
        assert "no" not in plane.text()


def test_a_kill_reaches_a_hook_too(tmp_path: Path) -> None:
    files = {"startup-hook.sh": "echo hooking; sleep 100"}
    with control_plane("echo ran", files=files) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "hooking" in plane.text())
        plane.send_signal(kill=True)
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 137
        assert "ran" not in plane.text()


def test_a_preemption_during_the_hook_needs_no_checkpoint(tmp_path: Path) -> None:
    files = {"startup-hook.sh": "echo hooking; sleep 100"}
    with control_plane("echo ran", files=files) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "hooking" in plane.text())
        plane.send_signal(preempt=True)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert (exit_.exit_code, exit_.acknowledged, exit_.failure) == (0, True, "")


@pytest.mark.parametrize("status", [grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_request_to_preempt_is_repeated_after_an_error_of_the_server(
    tmp_path: Path, status: grpc.StatusCode
) -> None:
    script = "echo training; while true; do sleep 0.05; done"
    with control_plane(script, lease_ttl=60.0, preemption_timeout=60.0) as plane:
        refused: list[int] = []
        accept = plane.RequestPreemption

        def fail_twice(request: Any, context: grpc.ServicerContext) -> Any:
            if len(refused) < 2:
                refused.append(request.reason)
                context.abort(status, "a moment of weakness")
            return accept(request, context)

        plane.RequestPreemption = fail_twice  # type: ignore[method-assign]
        plane.stop()
        plane.start()
        with supervised(tmp_path, plane) as run:
            plane.wait_for(lambda: "training" in plane.text())
            run.process.send_signal(signal.SIGTERM)
            plane.wait_for(lambda: plane.preemptions)
            assert refused == plane.preemptions * 2 == [SIGNAL_REASON_MACHINE] * 2
            plane.send_signal(preempt=True, kill=True)
            assert run.wait() == 0


def test_sigterm_asks_the_control_plane_to_preempt_the_run(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "good.py"], files=FILES) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 0
        assert plane.preemptions == [SIGNAL_REASON_MACHINE]
        assert plane.exits[0].acknowledged


def test_a_second_sigterm_means_now(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "stubborn.py"], files=FILES) as plane,
        supervised(tmp_path, plane, term_grace_seconds=0.2) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        run.process.send_signal(signal.SIGTERM)
        plane.wait_for(lambda: plane.preemptions)
        run.process.send_signal(signal.SIGTERM)
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 137


def test_an_early_exit_is_carried_to_the_control_plane(tmp_path: Path) -> None:
    script = """
import json, os
with open(os.environ["RESOLUTE_RUN_DIR"] + "/early_exit.json", "w") as file:
    json.dump({"reason": "INVALID_HP"}, file)
"""
    with (
        control_plane(["python3", "t.py"], files={"t.py": script}) as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 0
        assert exit_.early_exit_reason == EARLY_EXIT_REASON_INVALID_HP


@pytest.mark.integration
def test_who_said_that_it_ends_early_has_ten_seconds_to_do_so(tmp_path: Path) -> None:
    reason = '{"reason": "EXITED_REASON_INVALID_HP"}'
    script = f"echo '{reason}' > $RESOLUTE_RUN_DIR/early_exit.json; sleep 100"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: len(plane.pids) >= 2)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 137
        assert exit_.early_exit_reason == EARLY_EXIT_REASON_INVALID_HP


def test_what_the_entrypoint_leaves_behind_is_ended(tmp_path: Path) -> None:
    script = "sleep 101 & (setsid sleep 102 &) ; (env -i sleep 103 &); echo $!; exit 0"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 0
        assert run.members() == []
        sleeper = ProcessIdentity.of(int(plane.text()[0]))
        assert sleeper is None or not sleeper.is_alive()


def test_lines_written_by_what_is_left_behind_are_kept(tmp_path: Path) -> None:
    script = 'exec > >(while read l; do sleep 0.05; echo "got $l"; done); echo a; echo b'
    with control_plane(["bash", "-c", script]) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert plane.text() == ["got a", "got b"]


def test_a_superseded_run_ends_and_its_history_still_arrives(tmp_path: Path) -> None:
    script = "trap 'echo last words; exit 1' TERM; echo training; while true; do sleep 0.05; done"
    with control_plane(script, lease_ttl=0.3) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "training" in plane.text())
        plane.refusal = (grpc.StatusCode.ABORTED, "run 2 has taken over")
        assert run.wait() == 0
        assert "last words" in plane.text()
        assert "run 2 has taken over" in run.record().failure


def test_an_allocation_that_is_unknown_ends_before_it_began(tmp_path: Path) -> None:
    with control_plane("echo ran", lease_ttl=0.3) as plane:
        plane.refusal = (grpc.StatusCode.NOT_FOUND, "no such allocation")
        with supervised(tmp_path, plane) as run:
            assert run.wait() == 0
            assert run.record().exit_code != 0
            assert "no such allocation" in run.record().failure


def test_a_second_supervisor_is_refused(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "good.py"], files=FILES) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: "training" in plane.text())
        child = run.child
        again = _start_again(run.run)
        assert again == (75, f"{run.run.path} has a supervisor already")
        assert run.child == child
        plane.send_signal(kill=True)
        run.wait()
        # Nor is it started again after its end.
        assert _start_again(run.run)[0] == 75
        assert len(plane.exits) == 1


def _start_again(run: RunDirectory) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "resolute_launch.supervisor", str(run.path)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.split(";")[0].strip()


def test_the_identity_of_the_child_is_on_disk_before_it_runs(tmp_path: Path) -> None:
    script = "cat $RESOLUTE_RUN_DIR/child.json; echo; echo $$"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        *content, pid = plane.text()
        known = json.loads("".join(content))
        assert known["pid"] == known["pgid"] == int(pid)
        assert read_json(run.run.child_file) == known


def test_a_supervisor_that_is_killed_leaves_no_entrypoint_that_was_not_released(tmp_path: Path) -> None:
    files = {"startup-hook.sh": "echo hooking; sleep 0.5"}
    with control_plane("echo ran > ran", files=files) as plane, supervised(tmp_path, plane) as run:
        plane.wait_for(lambda: "hooking" in plane.text())
        os.kill(run.process.pid, signal.SIGKILL)
        run.wait()
        wait_until(lambda: not run.members())
        assert not (run.run.work / "ran").exists()
        assert not run.run.exit_file.exists()


def test_a_service_that_cannot_take_a_run_s_lines_does_not_keep_the_run_from_ending(tmp_path: Path) -> None:
    with control_plane("echo lost for now; exit 3") as plane:

        def fail(request: object, context: grpc.ServicerContext) -> None:
            context.abort(grpc.StatusCode.INTERNAL, "a defect of the service")

        plane.IngestLines = fail  # type: ignore[method-assign,assignment]
        plane.stop()
        plane.start()
        with supervised(tmp_path, plane) as run:
            assert run.wait(60.0) == 0
            assert plane.exits[0].exit_code == 3
            assert "it stays on disk" in run.log()
            assert list(run.run.spool.glob("*.logs")), "what could not be sent is still there"
