"""Warm starts: a fork of a parked process is to its script what a new interpreter is."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wire.warm.runs import SCRIPT, STARTS_A_THREAD, parked_process, start

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
FILES = {"train.py": PORTRAIT, "helper.py": "import colorsys\nHELPED = True\n"}


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
import atexit, sys, threading
import colorsys
atexit.register(print, "bye")
what = sys.argv[1]
if what == "kill": import os, signal; os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
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
