"""What Python processes write to stdout and to stderr is read in the order of writing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.spool.format import Line
from resolute.runtime.redaction import Secrets
from resolute.spool.line_writer import LineWriter
from resolute.spool.reader import SpoolReader
from resolute_launch import interpreter
from resolute_launch.container.output import OutputCollector
from resolute_launch.interpreter._resolute_output import VARIABLE, name_pipes

COUNT = 15
WAYS = {
    "print": "print('out', n, flush=True); print('err', n, file=sys.stderr)",
    "bytes": "sys.stdout.buffer.write(b'out %d\\n' % n); flush(); sys.stderr.buffer.write(b'err %d\\n' % n)",
    "logging": "print('out', n, flush=True); log.error('err %d', n)",
    "in parts": "sys.stdout.write('o'); print('ut', n); flush(); print('err', n, file=sys.stderr)",
}
PROLOGUE = """
import logging, sys
logging.basicConfig(format="%(message)s")
log = logging.getLogger()
def flush(): sys.stdout.flush(); sys.stderr.flush()
"""


def environment(**more: str) -> dict[str, str]:
    base = {name: value for name, value in os.environ.items() if not name.startswith("RESOLUTE_")}
    return {**base, "PYTHONPATH": interpreter.__path__[0], **more}


def lines_of(script: str, folder: Path, environ: Mapping[str, str]) -> list[str]:
    """The log of a script whose two streams the collector of a supervisor reads."""
    writer = LineWriter(folder, name="lines", clock=SYSTEM_CLOCK)
    collector = OutputCollector(
        RunDirectory(folder),
        writer,
        clock=SYSTEM_CLOCK,
        barrier=folder / "gate",
        secrets=Secrets(),
        hook_finished=lambda: None,
    )
    pipes = collector.stdout.writer, collector.stderr.writer
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=pipes[0],
        stderr=pipes[1],
        env={**environ, VARIABLE: name_pipes(*pipes)},
    ) as process:
        collector.start()
        process.wait()
    assert collector.finish(60)
    collector.stop()
    writer.close()
    reader = SpoolReader(writer.path)
    try:
        return [record.text.decode() for record in reader.peek(1 << 24).records() if isinstance(record, Line)]
    finally:
        reader.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_lines_of_both_streams_are_in_the_order_of_writing(way: str, unbuffered: str, tmp_path: Path) -> None:
    script = f"{PROLOGUE}\nfor n in range({COUNT}):\n    {WAYS[way]}; flush()\n1 / 0"
    lines = lines_of(script, tmp_path, environment(PYTHONUNBUFFERED=unbuffered))
    assert lines[: 2 * COUNT] == [f"{stream} {n}" for n in range(COUNT) for stream in ("out", "err")]
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_streams_that_libraries_hold_already_are_ordered_too(tmp_path: Path) -> None:
    # As in a parked process: its imports have seen the streams before it belongs to a run.
    late = f"""
import os
pipes = os.environ.pop("KEPT")
import _resolute_output
os.environ["{VARIABLE}"] = pipes
_resolute_output.install()
for n in range({COUNT}):
    print("out", n)
    log.error("err %d", n)
"""
    script = f"import os\nos.execve({sys.executable!r}, ['python', '-c', {PROLOGUE + late!r}], "
    script += f"{{**os.environ, 'KEPT': os.environ['{VARIABLE}'], '{VARIABLE}': ''}})"
    lines = lines_of(script, tmp_path, environment(PYTHONUNBUFFERED="1"))
    assert lines == [f"{stream} {n}" for n in range(COUNT) for stream in ("out", "err")]


def test_children_and_threads_end_and_lose_no_line(tmp_path: Path) -> None:
    script = f"""
import multiprocessing, sys, threading
def write(name):
    for n in range({COUNT}):
        print(name, n, file=(sys.stdout, sys.stderr)[n % 2])
others = [multiprocessing.get_context("fork").Process(target=write, args=(f"child{{i}}",)) for i in range(3)]
for other in others: other.start()
others += [threading.Thread(target=write, args=(f"thread{{i}}",)) for i in range(3)]
for other in others[3:]: other.start()
for other in others: other.join()
"""
    lines = lines_of(script, tmp_path, environment())
    expected = [f"{kind}{i} {n}" for kind in ("child", "thread") for i in range(3) for n in range(COUNT)]
    # Parts of two lines may meet, as at a terminal, and their pieces are all there.
    assert sorted("".join(lines).replace(" ", "")) == sorted("".join(expected).replace(" ", ""))


def test_a_script_whose_reader_is_away_goes_on() -> None:
    pipes = os.pipe(), os.pipe()
    try:
        ends = subprocess.run(
            [sys.executable, "-c", f"{PROLOGUE}\nfor n in range({COUNT}): {WAYS['print']}"],
            stdout=pipes[0][1],
            stderr=pipes[1][1],
            env=environment(**{VARIABLE: name_pipes(pipes[0][1], pipes[1][1])}),
            check=True,
            timeout=120,
        )
        assert ends.returncode == 0
        assert os.read(pipes[1][0], 1 << 16).startswith(b"err 0\nerr 1\n")
    finally:
        for descriptor in (*pipes[0], *pipes[1]):
            os.close(descriptor)


def test_a_script_may_close_or_replace_either_stream(tmp_path: Path) -> None:
    script = """
import os, sys
print("first")
os.dup2(os.open("/dev/null", os.O_WRONLY), 2)
print("nowhere", file=sys.stderr)
print("second")
os.close(2)
print("third")
sys.stdout = open(1, "w", closefd=False)
print("fourth", flush=True)
"""
    lines = ["first", "second", "third", "fourth"]
    assert lines_of(script, tmp_path, environment(PYTHONUNBUFFERED="1")) == lines
    (tmp_path / "buffered").mkdir()
    # Without it what was put aside is written at the end, as Python does it.
    assert sorted(lines_of(script, tmp_path / "buffered", environment(PYTHONUNBUFFERED=""))) == sorted(lines)


SHOWS = """
import io, json, sys
shown = [
    (s.fileno(), s.isatty(), s.encoding, s.errors, s.newlines, s.line_buffering, s.write_through, s.mode,
     s.name, s.buffer.name, isinstance(s.buffer, io.FileIO), isinstance(s.buffer, io.BufferedWriter),
     s is t, s.seekable(), s.writable(), s.readable())
    for s, t in ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__))
]
print(json.dumps(shown))
"""


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_a_script_sees_the_streams_that_it_would_see_elsewhere(unbuffered: str, tmp_path: Path) -> None:
    environ = environment(PYTHONUNBUFFERED=unbuffered)
    elsewhere = subprocess.run(
        [sys.executable, "-c", SHOWS], capture_output=True, text=True, check=True, env=environ
    )
    assert lines_of(SHOWS, tmp_path, environ) == [elsewhere.stdout.strip()]


def test_processes_with_streams_of_their_own_are_left_alone(tmp_path: Path) -> None:
    inner = "import sys; print(type(sys.stdout.buffer).__name__)"
    script = f"""
import subprocess, sys
print(type(sys.stdout.buffer).__name__)
print(subprocess.run([sys.executable, "-c", {inner!r}], capture_output=True, text=True).stdout, end="")
"""
    assert lines_of(script, tmp_path, environment(PYTHONUNBUFFERED="1")) == ["Output", "FileIO"]
