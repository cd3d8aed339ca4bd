"""Warm starts: a fork of a parked process is to its script what a new interpreter is."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.clusters.control_plane import control_plane, make_spec
from support.clusters.supervisors import supervised
from support.waiting import wait_until

from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.launch_order import LaunchOrder
from resolute_launch.container.entrypoint_process import (
    EntrypointProcess,
    Shell,
    StartedProcess,
    barrier_file,
    process_tree_of,
)
from resolute_launch.container.task import Task
from resolute_launch.exec.entrypoint import plan
from resolute_launch.warm import protocol
from resolute_launch.warm.client import WarmStart
from resolute_launch.warm.forked_process import request_fork

WARM = {
    "environment": {"environment_variables": {"cpu": ["FROM_CONFIG=yes"]}, "warm_start": {"enabled": True}}
}
PORTRAIT = '''
"""Shows what a script can see of its process."""
import json, os, signal, sys
from helper import HELPED

OWN = ("DET_", "RESOLUTE_", "TMP", "C10D_")

def portrait():
    pid = os.getpid()
    numbers = [*range(1, 32), 34, 60]
    shown = open("/proc/self/cmdline", "rb").read().rstrip(bytes(1)).split(bytes(1))
    return {
        "argv": sys.argv, "orig_argv": sys.orig_argv[1:], "path": sys.path, "executable": sys.executable,
        "name": __name__, "doc": __doc__, "file": __file__,
        "spec": str(__spec__).partition(" at ")[0], "package": __package__,
        "main": sys.modules["__main__"].__dict__ is globals(),
        "flags": str(sys.flags), "cached": __cached__,
        "globals": sorted(globals()), "helped": HELPED, "loader": type(__loader__).__name__,
        "cwd": os.getcwd(), "leads": [os.getpgid(0) == pid, os.getsid(0) == pid],
        "fds": [os.readlink(f"/proc/self/fd/{n}") for n in (0, 1, 2)],
        "open": len(os.listdir("/proc/self/fd")), "stdin": sys.stdin.read(),
        "signals": [str(signal.getsignal(n)) for n in numbers], "mask": sorted(signal.pthread_sigmask(0, [])),
        "umask": os.umask(0o22), "nice": os.nice(0), "cgroup": open("/proc/self/cgroup").read(),
        "environment": {
            k: v for k, v in os.environ.items() if not k.startswith(OWN)
        },
        "names": sorted(os.environ), "command": [word.decode() for word in shown][1:],
        "run": ("RESOLUTE_RUN_DIR=" + os.environ["RESOLUTE_RUN_DIR"]).encode()
            in open("/proc/self/environ", "rb").read().split(bytes(1)),
        "streams": [(s.encoding, s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)],
    }

print(json.dumps(portrait()))
'''
IDLE_SECONDS = 3600.0
"""Longer than any test: a parked process ends when its test says so."""
FILES = {"train.py": PORTRAIT, "helper.py": "import colorsys\nHELPED = True\n"}


@dataclass
class Started:
    """One run of an entrypoint without a supervisor: its processes, and what they wrote."""

    run: RunDirectory
    process: EntrypointProcess
    said: list[str]
    """What the log of the trial would say."""

    def finish(self) -> int:
        self.process.wait_without_reaping()
        return self.process.reap()

    def text(self) -> str:
        output = (self.run.path / "output").read_text() + (self.run.path / "errors").read_text()
        return output.replace(str(self.run.path), "RUN")


def start(
    folder: Path,
    name: str,
    entrypoint: Any,
    files: Mapping[str, str],
    *,
    warm: bool = True,
    environ: Mapping[str, str] | None = None,
    slot: int = 0,
    experiment: str = "experiment-1",
) -> Started:
    run = RunDirectory(folder / name)
    run.prepare()
    for path, text in files.items():
        (run.work / path).write_text(text)
    os.mkfifo(barrier_file(run))
    order = LaunchOrder(
        allocation_id=name, master="", token="", slot_ids=(slot,), warm_directory=str(folder / "warm")
    )
    task = Task(make_spec(entrypoint, config=WARM, experiment_id=experiment), order, run)
    base = {key: value for key, value in os.environ.items() if not key.startswith(("DET_", "RESOLUTE_"))}
    environment = {
        **base,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "DET_SESSION_TOKEN": f"secret-of-{name}",
        "RESOLUTE_RUN_DIR": str(run.path),
        **(environ or {}),
    }
    said: list[str] = []
    argv = plan(entrypoint, python=sys.executable).argv
    with (run.path / "output").open("wb") as out, (run.path / "errors").open("wb") as err:
        process: StartedProcess | None = None
        streams = {"stdout": out.fileno(), "stderr": err.fileno()}
        if warm:
            warm_start = WarmStart(
                task, interrupted=lambda: False, log_line=said.append, idle_seconds=IDLE_SECONDS
            )
            process = warm_start.fork(argv, environment=environment, **streams)
        process = process or Shell.start(run, environment=environment, **streams)
    started = Started(run, EntrypointProcess(process, run), said)
    started.process.release(argv, {"RESOLUTE_COLLECTIVE_KEY": f"key-of-{name}"})
    return started


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose parked processes end with the test."""
    yield tmp_path
    for directory in (tmp_path / "warm").glob("*"):
        connection = protocol.connect(directory)
        if connection is not None:
            with connection:
                connection.sendall(protocol.QUIT)
            wait_until(partial(missing, directory / protocol.SOCKET))


def parked_process(folder: Path) -> int:
    """Finds the parked process of a folder, which the kernel knows by the lock that it holds."""
    (lock,) = (folder / "warm").glob("*/lock")
    (inode,) = {str(lock.stat().st_ino)}
    (line,) = [line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line]
    return int(line.split()[4])


def memory_of(pid: int) -> Iterator[bytes]:
    """Yields what a process has in its writable memory."""
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if match:
                begin, end = (int(number, 16) for number in match.groups())
                with contextlib.suppress(OSError, ValueError, OverflowError):
                    memory.seek(begin)
                    yield memory.read(end - begin)


def childless(pid: int) -> bool:
    return not Path(f"/proc/{pid}/task/{pid}/children").read_text()


def missing(path: Path) -> bool:
    return not path.exists()


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def shown(folder: Path, entrypoint: Any, name: str, *, warm: bool) -> Any:
    started = start(folder, name, entrypoint, FILES, warm=warm)
    assert started.finish() == 0, started.text()
    return json.loads(started.text())


@pytest.mark.parametrize(
    "entrypoint",
    [["python3", "train.py", "--epochs", "3", "two words"], ["python3", "-u", "-m", "train", "--x"]],
    ids=["script", "module"],
)
def test_a_fork_looks_to_its_script_like_a_new_interpreter(folder: Path, entrypoint: list[str]) -> None:
    cold = shown(folder, entrypoint, "cold", warm=False)
    first = shown(folder, entrypoint, "first", warm=True)
    second = shown(folder, entrypoint, "second", warm=True)
    assert list((folder / "warm").glob("*/socket"))
    for part, value in cold.items():
        assert first[part] == value, part
        assert second[part] == value, part


ENDINGS = """
import atexit, sys, threading, time
import colorsys
atexit.register(print, "bye")
what = sys.argv[1]
if what == "kill": import os, signal; os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
class Mine(Exception): pass
def fail():
    raise Mine("no") from KeyError("why")
if what == "raise": fail()
if what == "exit": sys.exit(7)
if what == "text": sys.exit("left")
if what == "interrupt": raise KeyboardInterrupt
if what == "left":
    class Loud:
        def __del__(self): print("destroyed", what)
    loud = Loud()
    unclosed = open("left.txt", "w")
    colorsys.kept = open("kept.txt", "w")
    for file in (unclosed, colorsys.kept): file.write("flushed")
if what == "closed": sys.stdout.close()
"""


@pytest.mark.parametrize("what", ["raise", "exit", "text", "interrupt", "kill", "end", "left", "closed"])
def test_a_fork_ends_as_a_new_interpreter_does(folder: Path, what: str) -> None:
    entrypoint, files = ["python3", "train.py", what], {"train.py": ENDINGS}
    cold = start(folder, "cold", entrypoint, files, warm=False)
    warm = start(folder, "warm-run", entrypoint, files)
    assert (warm.finish(), warm.text()) == (cold.finish(), cold.text())
    assert not warm.said
    written = [{path.name: path.read_text() for path in one.run.work.glob("*.txt")} for one in (warm, cold)]
    assert written[0] == written[1]
    assert len(written[0]) == (2 if what == "left" else 0)


def test_what_the_first_run_imported_is_there_in_the_second_and_no_token_stays(folder: Path) -> None:
    script = "import sys; print('wave' in sys.modules)\ndef f(): import wave\nf()"
    shown = []
    for name in ("first", "second"):
        started = start(folder, name, ["python3", "train.py"], {"train.py": script})
        assert started.finish() == 0
        shown += started.text().split()
    assert shown == ["False", "True"]
    memory = list(memory_of(parked_process(folder)))
    assert memory
    assert not [part for part in memory if b"secret-of-" in part or b"key-of-" in part]


def test_what_core_init_imports_is_there_in_the_first_run_of_a_script_that_names_resolute(
    folder: Path,
) -> None:
    script = "import sys, resolute; print('resolute.core.remote.assembly' in sys.modules)"
    for warm in (True, False):
        started = start(folder, f"run-{warm}", ["python3", "train.py"], {"train.py": script}, warm=warm)
        assert started.finish() == 0
        assert started.text() == f"{warm}\n"


STARTS_A_THREAD = """
import threading
threading.Thread(target=threading.Event().wait, name='started', daemon=True).start()
"""
SCRIPT = ["python3", "train.py"]
REFUSALS: dict[str, tuple[Any, dict[str, str], str]] = {
    "shell": ("python3 train.py && true", {"train.py": ""}, "its entrypoint needs a shell"),
    "program": (["true"], {}, "its entrypoint starts true, not Python"),
    "hook": (SCRIPT, {"train.py": "", "startup-hook.sh": ""}, "its code has a startup-hook.sh"),
    "thread": (SCRIPT, {"train.py": "import starts_a_thread"}, "imports have started threads: started"),
}


@pytest.mark.parametrize("why", sorted(REFUSALS))
def test_what_cannot_be_forked_starts_cold_and_says_so_once(folder: Path, why: str) -> None:
    entrypoint, files, reason = REFUSALS[why]
    library = folder / "library"
    library.mkdir()
    (library / "starts_a_thread.py").write_text(STARTS_A_THREAD)
    said = []
    for name in ("first", "second"):
        started = start(folder, name, entrypoint, files, environ={"PYTHONPATH": str(library)})
        assert started.finish() == 0, started.text()
        said += started.said
    assert said == [f"warm start: this experiment's runs start cold: {reason}"]


def test_a_fork_that_cannot_go_on_becomes_the_shell_of_a_cold_start_and_nothing_more(folder: Path) -> None:
    (folder / ".bashrc").write_text("echo read ~/.bashrc")
    library = folder / "library"
    library.mkdir()
    (library / "helper.py").write_text("import os\nos.environ['SET_BY_IMPORT'] = 'yes'\n")
    environ = {"HOME": str(folder), "PYTHONPATH": str(library)}
    first = start(folder, "first", SCRIPT, {"train.py": "import helper; print('warm')"}, environ=environ)
    assert (first.finish(), first.text(), first.said) == (0, "warm\n", [])
    files = {"train.py": "import helper; print(helper.__file__)", "helper.py": ""}
    second = start(folder, "second", SCRIPT, files, environ=environ)
    assert (second.finish(), second.text()) == (0, "RUN/work/helper.py\n")
    assert second.said == [
        "warm start: this run starts cold: its code has a module helper beside another one"
    ]


WAITS = {"train.py": "import os, sys\nprint(os.getppid(), flush=True)\nopen(sys.argv[1]).read()"}


def waiting_run(folder: Path, name: str, **options: Any) -> tuple[Started, Path]:
    """Starts a run that goes on until its fifo is written to."""
    fifo = folder / f"{name}.fifo"
    os.mkfifo(fifo)
    started = start(folder, name, ["python3", "train.py", str(fifo)], WAITS, **options)
    wait_until(started.text)
    return started, fifo


def parent_of(started: Started) -> int:
    return int(started.text())


def end_of(started: Started, fifo: Path) -> int:
    fifo.write_text("go on")
    return started.finish()


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
