from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from resolute.contracts.run.directory import RunDirectory
from resolute.spool.line_splitter import MAX_LINE
from resolute_launch.processes.child_process import FORWARDED_SIGNALS
from resolute_launch.ranks.failures import first_rank_failure
from resolute_launch.ranks.line_prefix import Prefixer
from resolute_launch.ranks.wrap_rank import find_rank

WRAP = [sys.executable, "-m", "resolute_launch.wrap_rank"]


def gone(pid: int) -> bool:
    """Whether a process ends: one that was killed lives on for a moment on a busy machine."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 30)[0])
    finally:
        os.close(process)


def wrapped(*arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WRAP, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environ or {})},
    )


@pytest.mark.parametrize(
    ("text", "environ", "rank"),
    [
        ("3", {}, 3),
        ("RANK", {"RANK": "2"}, 2),
        ("HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK", {"PMI_RANK": "1", "OMPI_COMM_WORLD_RANK": "0"}, 0),
        ("A,7", {}, 7),
        ("A,B", {}, None),
        ("A", {"A": "x"}, None),
    ],
)
def test_the_first_variable_that_holds_a_number_is_the_rank(
    text: str, environ: dict[str, str], rank: int | None
) -> None:
    assert find_rank(text, environ) == rank


def test_every_piece_gets_its_prefix_and_keeps_its_end() -> None:
    prefixer = Prefixer(4)
    assert prefixer.feed(b"a\n 10%\r 20%\r\nrest") == b"[rank=4] a\n[rank=4]  10%\r[rank=4]  20%\r\n"
    assert prefixer.feed(b" of it\n\n") == b"[rank=4] rest of it\n[rank=4] \n"
    assert prefixer.feed(b"end") == b""
    assert prefixer.finish() == b"[rank=4] end\n"
    assert prefixer.finish() == b""
    assert prefixer.feed(b" 10%\x1b[") + prefixer.feed(b"1G 20%\n") == b"[rank=4]  10%\r[rank=4]  20%\n"


def test_a_line_that_comes_in_many_parts_is_looked_at_once() -> None:
    prefixer = Prefixer(0)
    # By what is kept of it alone: looking for its end from each of its bytes would take minutes.
    parts = [prefixer.feed(b"x" * 65536) for _ in range(64)]
    assert sum(part.count(b"x") for part in parts) >= 64 * 65536 - MAX_LINE
    assert prefixer.feed(b"\n").endswith(b"x\n")


def test_a_line_without_end_does_not_wait_for_ever() -> None:
    prefixer = Prefixer(0)
    out = prefixer.feed(b"x" * (MAX_LINE * 2))
    assert out == b"[rank=0] " + b"x" * MAX_LINE + b"\n"


def test_both_streams_are_prefixed_and_the_exit_code_is_the_scripts() -> None:
    done = wrapped("1", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "[rank=1] out\n", "[rank=1] err\n")


def test_a_script_may_be_set_off_by_dashes_and_have_some_of_its_own() -> None:
    assert wrapped("0", "--", "echo", "--", "-x").stdout == "[rank=0] -- -x\n"


def test_without_a_rank_nothing_is_run() -> None:
    done = wrapped("NO_SUCH_VARIABLE", "echo", "hi")
    assert done.returncode == 1
    assert "NO_SUCH_VARIABLE" in done.stderr
    assert done.stdout == ""


def test_without_a_script_the_usage_is_shown() -> None:
    done = wrapped("0")
    assert done.returncode == 2
    assert "empty script is not allowed" in done.stderr


def test_a_script_that_cannot_be_run_is_an_error_of_its_rank() -> None:
    done = wrapped("2", "/no/such/program")
    assert done.returncode == 127
    assert done.stderr == "[rank=2] cannot run '/no/such/program': No such file or directory\n"


@pytest.mark.parametrize("number", FORWARDED_SIGNALS, ids=lambda number: number.name)
def test_signals_are_passed_on(number: signal.Signals) -> None:
    script = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(40))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()\n"
    )
    with subprocess.Popen([*WRAP, "0", sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"[rank=0] ready\n"
        process.send_signal(number)
        assert process.wait(60) == 40


def test_a_script_that_a_signal_ended_ends_like_in_a_shell() -> None:
    assert wrapped("0", "sh", "-c", "kill -KILL $$").returncode == 137


@pytest.mark.parametrize(("ending", "code"), [("kill -KILL $$", 137), ("exit 0", 0), ("exit 3", 3)])
def test_a_rank_has_ended_when_its_process_has_whatever_holds_its_output(
    tmp_path: Path, ending: str, code: int
) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo out; echo why >&2; {ending}"
    before = time.time()
    done = wrapped("0", "sh", "-c", script, environ={"RESOLUTE_RUN_DIR": str(tmp_path)})
    assert time.time() - before < 30
    assert (done.returncode, done.stdout, done.stderr) == (code, "[rank=0] out\n", "[rank=0] why\n")
    # It does not outlive its rank.
    assert gone(int((tmp_path / "pid").read_text()))
    first = first_rank_failure(RunDirectory(tmp_path))
    assert (first.stderr_tail if first else "") == ("why" if code else "")


def test_one_that_has_left_the_group_of_its_rank_does_not_hold_it_up(tmp_path: Path) -> None:
    chatter = f"echo $$ > {tmp_path}/pid; while :; do echo more; done"
    wait = f"while [ ! -s {tmp_path}/pid ]; do sleep 0.02; done"
    try:
        assert wrapped("0", "sh", "-c", f"setsid sh -c '{chatter}' & {wait}; exit 4").returncode == 4
    finally:
        # It may be gone: nobody reads what it writes any more.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_last_lines_of_others_are_taken_after_the_end_of_the_process(tmp_path: Path) -> None:
    # Its end closes the pipe, which the other waits for: not a time, which a busy machine draws out.
    pipe = tmp_path / "pipe"
    script = f"mkfifo {pipe}; (read line < {pipe}; echo later) & exec 4> {pipe}; echo now; exit 2"
    done = wrapped("0", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (2, "[rank=0] now\n[rank=0] later\n")


def test_a_rank_that_has_closed_its_output_still_runs(tmp_path: Path) -> None:
    script = f"exec >&- 2>&-; sleep 0.3; echo done > {tmp_path}/done; exit 6"
    assert wrapped("0", "sh", "-c", script).returncode == 6
    assert (tmp_path / "done").exists()


def test_a_kernel_without_descriptors_of_processes_will_do() -> None:
    code = (
        "import os, sys; del os.pidfd_open; from resolute_launch.ranks import wrap_rank; "
        "sys.exit(wrap_rank.main())"
    )
    argv = [sys.executable, "-c", code, "0", "sh", "-c", "sleep 60 & echo out; sleep 0.3; exit 5"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (5, "[rank=0] out\n"), done.stderr


def test_a_failure_leaves_word_for_the_supervisor(tmp_path: Path) -> None:
    environ = {"RESOLUTE_RUN_DIR": str(tmp_path)}
    assert first_rank_failure(RunDirectory(tmp_path)) is None
    wrapped("5", "false", environ=environ)
    wrapped("0", "sh", "-c", "exit 3", environ=environ)
    wrapped("1", "true", environ=environ)
    first = first_rank_failure(RunDirectory(tmp_path))
    assert first is not None
    assert (first.rank, first.exit_code) == (5, 1)


def test_output_goes_past_a_launcher_that_would_rewrite_it(tmp_path: Path) -> None:
    pipe = tmp_path / "stdout"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        environ = {"RESOLUTE_STDOUT": str(pipe)}
        done = wrapped("0", "sh", "-c", "echo out; echo err >&2", environ=environ)
        assert (done.stdout, done.stderr) == ("", "[rank=0] err\n")
        assert os.read(reader, 100) == b"[rank=0] out\n"
        done = wrapped("--no-redirect-stdio", "0", "echo", "out", environ=environ)
        assert done.stdout == "[rank=0] out\n"
    finally:
        os.close(reader)


@pytest.mark.parametrize("left_over", ["no reader", "no pipe"])
def test_a_pipe_that_nobody_reads_any_more_is_not_used(tmp_path: Path, left_over: str) -> None:
    pipe = tmp_path / "stdout"
    if left_over == "no reader":
        os.mkfifo(pipe)
    assert wrapped("0", "echo", "out", environ={"RESOLUTE_STDOUT": str(pipe)}).stdout == "[rank=0] out\n"


def test_a_reader_that_leaves_does_not_end_the_script(tmp_path: Path) -> None:
    script = f"sleep 0.1; for i in $(seq 100); do echo $i; done; echo done > {tmp_path}/done"
    process = subprocess.Popen([*WRAP, "0", "sh", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 0
    assert (tmp_path / "done").exists()


def test_it_starts_without_what_it_does_not_need() -> None:
    heavy = "{'grpc', 'google.protobuf', 'torch'}"
    code = f"import resolute_launch.wrap_rank, sys; print({heavy} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_outside_of_a_run_every_piece_is_a_line() -> None:
    """A reader of lines sees a progress bar move; the log of a run keeps what it showed last."""
    prefixer = Prefixer(1, whole_lines=True)
    assert prefixer.feed(b"10%\r20%\rdone\r\n") == b"[rank=1] 10%\n[rank=1] 20%\n[rank=1] done\r\n"
    assert Prefixer(1).feed(b"10%\r20%\r") == b"[rank=1] 10%\r[rank=1] 20%\r"
