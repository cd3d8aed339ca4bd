"""A supervisor sees that nothing of its run moves, says what keeps it, and does what the config says."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from support.clusters.control_plane import ControlPlane, control_plane
from support.clusters.supervisors import supervised

STUCK = """
import os, time
def wait_for_shard():
    while not os.path.exists("shard"):
        time.sleep(0.2)
wait_for_shard()
print("went on", flush=True)
"""
COMPUTES = """
import time
end = time.monotonic() + 8
while time.monotonic() < end:
    sum(range(1000))
"""
IN_CHILD = """
import multiprocessing, time
def stand_still():
    time.sleep(1000)
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=stand_still)
    child.start()
    child.join()
"""


def hang(**section: Any) -> dict[str, Any]:
    return {"hang": {"after": 3, "on_hang": "warn", **section}}


def sentences(plane: ControlPlane) -> list[str]:
    return [text for text in plane.text(stdtype="") if "nothing of the run moves" in text]


def test_a_run_that_stands_still_says_where_and_when_it_moves_again(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "stuck.py"], files={"stuck.py": STUCK}, config=hang()) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.hangs)
        assert plane.hangs[0].startswith("the script is in wait_for_shard at stuck.py:5, ")
        plane.wait_for(
            lambda: any('File "' in text and "stuck.py" in text for text in plane.text(stdtype=""))
        )
        (run.run.work / "shard").touch()
        plane.wait_for(lambda: plane.exits)
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 0
        assert len(sentences(plane)) == 1


def test_a_run_that_hangs_is_ended_where_its_config_says_so(tmp_path: Path) -> None:
    config = hang(on_hang="restart")
    with (
        control_plane(["python3", "stuck.py"], files={"stuck.py": STUCK}, config=config) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.exits)
        assert run.wait() == 0
        (exit_,) = plane.exits
        assert exit_.exit_code == 137
        assert exit_.failure.startswith(
            "nothing of the run moved: the script is in wait_for_shard at stuck.py:5"
        )


def test_stacks_of_children_are_in_the_log(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "parent.py"], files={"parent.py": IN_CHILD}, config=hang()) as plane,
        supervised(tmp_path, plane),
    ):
        plane.wait_for(lambda: any("in stand_still" in text for text in plane.text(stdtype="")))


def test_who_computes_without_a_word_does_not_hang(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "busy.py"], files={"busy.py": COMPUTES}, config=hang()) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.exits)
        assert run.wait() == 0
        assert plane.exits[0].exit_code == 0
        assert sentences(plane) == []


def test_processes_that_do_not_answer_are_asked_nothing_and_live_on(tmp_path: Path) -> None:
    # Isolated from its environment, an interpreter handles no signal of ours, which would end it.
    with (
        control_plane(["python3", "-I", "stuck.py"], files={"stuck.py": STUCK}, config=hang()) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.hangs)
        assert plane.hangs[0].startswith("the script does not say where it is, ")
        (run.run.work / "shard").touch()
        plane.wait_for(lambda: plane.exits)
        assert plane.exits[0].exit_code == 0


def test_a_process_that_is_stopped_is_named_so(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "stuck.py"], files={"stuck.py": STUCK}, config=hang()) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: run.child is not None and any(plane.pids))
        child = run.child
        assert child is not None
        child.send(signal.SIGSTOP)
        plane.wait_for(lambda: plane.hangs)
        assert plane.hangs[0].startswith("the script is stopped by a signal (SIGSTOP), ")
        child.send(signal.SIGCONT)
