"""Warm starts: whose runs a parked process serves, when it ends, and what it keeps."""

from __future__ import annotations

import os
import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised
from support.waiting import wait_until
from wire.warm.runs import (
    SCRIPT,
    STARTS_A_THREAD,
    WARM,
    end_of,
    missing,
    parent_of,
    parked_process,
    start,
    waiting_run,
)

from resolute.contracts.processes import ProcessIdentity
from resolute_launch.container.entrypoint_process import process_tree_of
from resolute_launch.warm import protocol
from resolute_launch.warm.fork.process import request_fork


def childless(pid: int) -> bool:
    return not Path(f"/proc/{pid}/task/{pid}/children").read_text()


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_slots_share_a_parked_process_unless_their_runs_see_another_environment(folder: Path) -> None:
    first, first_fifo = waiting_run(folder, "first")
    second, second_fifo = waiting_run(folder, "second", slot=1)
    other, other_fifo = waiting_run(folder, "other", slot=2, environ={"CUDA_VISIBLE_DEVICES": "2"})
    assert parent_of(first) == parent_of(second) != parent_of(other)
    assert [one.said for one in (first, second, other)] == [[], [], []]
    assert end_of(first, first_fifo) == end_of(second, second_fifo) == end_of(other, other_fifo) == 0


def test_runs_that_begin_at_once_start_one_parked_process(folder: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        starts = [threads.submit(waiting_run, folder, f"run-{slot}", slot=slot) for slot in range(4)]
        found = [one.result() for one in starts]
    assert len({parent_of(started) for started, _ in found}) == 1
    assert not any(started.said for started, _ in found)
    assert {end_of(*one) for one in found} == {0}


def test_another_experiment_ends_a_parked_process_of_its_slots_once_no_run_needs_it(folder: Path) -> None:
    first, fifo = waiting_run(folder, "first", slot=1)
    idle = start(folder, "idle", SCRIPT, {"train.py": ""})
    assert idle.finish() == 0
    (directory,) = (folder / "warm").iterdir()

    def another(name: str, slot: int) -> None:
        entrypoint = ["python3", "train.py"]
        assert start(folder, name, entrypoint, {"train.py": ""}, slot=slot, experiment="other").finish() == 0

    another("beside", 0)
    assert (directory / protocol.SOCKET).exists(), "a run on the other slot is its fork"
    assert end_of(first, fifo) == 0
    another("elsewhere", 2)
    assert (directory / protocol.SOCKET).exists(), "its slots are free, and nobody wants them"
    another("instead", 1)
    wait_until(lambda: not (directory / protocol.SOCKET).exists())


ENDS_ITS_PROCESS = """
import os, select, socket
if "DET_SESSION_TOKEN" not in os.environ:
    for name in os.listdir("/proc/self/fd"):
        if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
            listener = socket.socket(fileno=os.dup(int(name)))
            if listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                select.select([listener], [], [])
                os._exit(3)
"""
"""A module that ends the parked process, once the next run asks it for a fork."""


def test_an_import_that_ends_the_parked_process_ends_no_run(folder: Path) -> None:
    library = folder / "library"
    library.mkdir()
    (library / "ends_its_process.py").write_text(ENDS_ITS_PROCESS)
    environ = {"PYTHONPATH": str(library)}
    files = {"train.py": "import os\nprint(os.getppid())\ndef f(): import ends_its_process\nf()"}
    sibling, fifo = waiting_run(folder, "sibling", slot=1, environ=environ)
    for name in ("first", "beside"):
        started = start(folder, name, SCRIPT, files, environ=environ)
        assert started.finish() == 0
        assert parent_of(started) == parent_of(sibling), "it imports nothing while a fork runs"
    assert end_of(sibling, fifo) == 0
    after = [start(folder, "after", SCRIPT, files, environ=environ)]
    assert after[0].finish() == 0
    after.append(start(folder, "later", SCRIPT, files, environ=environ))
    assert after[1].finish() == 0
    assert [one.said for one in after] == [[], []]
    assert parent_of(after[0]) == parent_of(after[1]) != parent_of(sibling)


def test_what_an_import_removes_at_its_end_stays_for_the_next_run(folder: Path) -> None:
    library = folder / "library"
    library.mkdir()
    (library / "makes_a_directory.py").write_text(
        "import tempfile\nfolder = tempfile.TemporaryDirectory(dir=__file__.rpartition('/')[0])\n"
    )
    files = {
        "train.py": "import os, makes_a_directory\nprint(os.path.isdir(makes_a_directory.folder.name))\n"
    }
    for name in ("first", "second"):
        started = start(folder, name, SCRIPT, files, environ={"PYTHONPATH": str(library)})
        assert (started.finish(), started.text().strip(), started.said) == (0, "True", [])


def test_a_run_after_an_import_that_starts_a_thread_is_a_fork_of_another_process(folder: Path) -> None:
    library = folder / "library"
    library.mkdir()
    (library / "starts_a_thread.py").write_text(STARTS_A_THREAD)
    files = {"train.py": "import os\nprint(os.getppid())\ndef f(): import starts_a_thread\nf()"}
    runs = []
    for name in ("first", "second", "third"):
        runs.append(start(folder, name, SCRIPT, files, environ={"PYTHONPATH": str(library)}))
        assert runs[-1].finish() == 0
    first, second, third = map(parent_of, runs)
    assert first != second == third
    assert [one.said for one in runs] == [[], [], []]


def test_a_parked_process_that_leaves_gives_its_place_to_another_while_its_forks_run(folder: Path) -> None:
    first, first_fifo = waiting_run(folder, "first")
    (directory,) = (folder / "warm").iterdir()
    parked = ProcessIdentity.of(parent_of(first))
    assert parked is not None
    os.kill(parked.pid, signal.SIGTERM)
    wait_until(partial(missing, directory / protocol.SOCKET))
    second, second_fifo = waiting_run(folder, "second", slot=1)
    assert parent_of(second) != parent_of(first)
    assert end_of(first, first_fifo) == 0
    wait_until(lambda: not parked.is_alive())
    third, third_fifo = waiting_run(folder, "third")
    assert parent_of(third) == parent_of(second), "the end of the one before left its socket alone"
    assert end_of(second, second_fifo) == end_of(third, third_fifo) == 0
    assert [one.said for one in (first, second, third)] == [[], [], []]


@pytest.mark.parametrize("reads_it_first", [True, False])
def test_a_request_that_meets_an_end_leaves_nothing_open(reads_it_first: bool) -> None:
    ours, theirs = socket.socketpair()

    def end() -> None:
        with theirs:
            select.select([theirs], [], [])
            if reads_it_first:
                _, descriptors, _, _ = socket.recv_fds(theirs, 64, 3)
                for descriptor in descriptors:
                    os.close(descriptor)

    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(end)
        assert request_fork(ours, (1, 2)) is None
        ended.result()
    assert ours.fileno() == -1


def test_a_run_whose_directory_cannot_be_made_starts_cold(folder: Path) -> None:
    (folder / "warm").write_text("in the way")
    started = start(folder, "run", SCRIPT, {"train.py": "print('here')"})
    assert (started.finish(), started.text()) == (0, "here\n")
    (said,) = started.said
    assert said.startswith("warm start: this run starts cold: ")


MOST_GROWTH_KIB = 1024
"""Pages that the allocator may take while it serves runs, whatever their number."""


def holds_at_most(descriptors: int, process: int) -> bool:
    return descriptors_of(process) <= descriptors


def status_of(process: int, name: str) -> int:
    """A number of a process's status."""
    (line,) = [
        line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith(name)
    ]
    return int(line.split()[1])


def test_a_parked_process_keeps_nothing_of_its_runs(folder: Path, pytestconfig: pytest.Config) -> None:
    first, descriptors, memory = 0, 0, 0
    for number in range(200 if pytestconfig.getoption("--whole") else 20):
        started = start(folder, f"run-{number}", ["python3", "train.py"], {"train.py": "print('here')"})
        assert started.finish() == 0
        assert started.text() == "here\n"
        parked = parked_process(folder)
        wait_until(partial(childless, parked))
        if number < 2:
            first, descriptors, memory = parked, descriptors_of(parked), status_of(parked, "RssAnon")
            continue
        assert parked == first
        assert status_of(parked, "Threads") == 1
        # It closes those of a run a moment after the run has ended.
        wait_until(partial(holds_at_most, descriptors, parked))
    assert status_of(first, "RssAnon") - memory < MOST_GROWTH_KIB


def test_a_supervised_run_starts_warm_and_its_processes_end_with_a_lost_supervisor(folder: Path) -> None:
    script = "import os, time\nprint('begun', flush=True)\nif not os.fork(): os.setsid()\ntime.sleep(9e5)"
    with (
        control_plane(
            ["python3", "train.py"], files={"train.py": script}, config=WARM, experiment_id="experiment-1"
        ) as plane,
        supervised(folder / "run", plane, warm_directory=str(folder / "warm")) as run,
    ):
        plane.wait_for(lambda: "begun" in plane.text(), seconds=60)
        assert parked_process(folder)
        wait_until(lambda: len(run.members()) == 2)
        run.process.kill()
        run.process.wait()
        left = process_tree_of(run.run, run.child).end(timeout=60)
        assert not left
        assert not run.members()
    (directory,) = (folder / "warm").glob("*")
    connection = protocol.connect(directory)
    assert connection is not None, "the parked process outlives the supervisor that started it"
    connection.close()
