"""What a trial writes, as people see it."""

from __future__ import annotations

import time
from pathlib import Path

from support.clusters.control_plane import control_plane
from support.clusters.supervisors import supervised

from resolute.api.logs.v1.line_pb2 import LEVEL_ERROR, LEVEL_INFO, LEVEL_UNSPECIFIED


def test_lines_carry_their_stream_their_rank_and_their_level(tmp_path: Path) -> None:
    script = "echo plain; echo '[rank=2] INFO: [7] mod: hi'; echo 'ERROR: bad' >&2"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        before = time.time()
        assert run.wait() == 0
        found = {
            (line.message, line.stdtype, line.rank if line.HasField("rank") else None, line.level)
            for line in plane.all_lines()
        }
        assert found == {
            ("plain", "stdout", None, LEVEL_UNSPECIFIED),
            ("INFO: [7] mod: hi", "stdout", 2, LEVEL_INFO),
            ("ERROR: bad", "stderr", None, LEVEL_ERROR),
        }
        assert all(abs(line.time.ToSeconds() - before) < 30 for line in plane.all_lines())


def test_a_progress_bar_is_one_line(tmp_path: Path) -> None:
    script = r"printf '\r 10%%|#  |\r 60%%|## |' >&2; printf '\r100%%|###|\n' >&2; echo end"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert sorted(plane.text()) == ["100%|###|", "end"]


def test_progress_bars_of_ranks_are_one_line_each(tmp_path: Path) -> None:
    bar = r"printf '\r 10%%'; sleep 0.2; printf '\r100%%\n'"
    script = " ".join(f'python3 -m resolute_launch.wrap_rank {rank} sh -c "{bar}" & ' for rank in range(2))
    with control_plane(script + "wait") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert sorted((line.rank, line.message) for line in plane.all_lines()) == [(0, "100%"), (1, "100%")]


def test_lines_of_a_rank_are_in_the_order_of_writing(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(
        "import logging\nlogging.basicConfig(format='%(message)s')\n"
        "for n in range(15):\n    print('out', n)\n    logging.error('err %d', n)"
    )
    with (
        control_plane(f"python3 -m resolute_launch.wrap_rank 3 python3 {tmp_path}/both.py") as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        assert plane.text() == [f"{stream} {n}" for n in range(15) for stream in ("out", "err")]


def test_a_long_line_becomes_several_of_at_most_8_kib(tmp_path: Path) -> None:
    with control_plane("printf '%020000d\\n' 7") as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        assert [len(text) for text in plane.text()] == [8192, 8192, 3616]


def test_a_flood_of_lines_arrives_whole_and_in_order(tmp_path: Path) -> None:
    with control_plane("seq 100000") as plane, supervised(tmp_path, plane) as run:
        assert run.wait(60) == 0
        assert plane.text() == [str(number) for number in range(1, 100001)]


def test_output_goes_on_while_the_disk_is_full(tmp_path: Path) -> None:
    # A limit on the size of files stands for a full disk: the same calls fail, and nobody else suffers.
    limit = ["prlimit", "--fsize=50000"]
    with (
        control_plane("echo first; sleep 0.3; seq 20000; exit 3") as plane,
        supervised(tmp_path, plane, prefix=limit) as run,
    ):
        assert run.wait() == 0
        assert plane.text()[0] == "first"
        assert len(plane.text()) < 20000
        assert plane.exits[0].exit_code == 3
        assert "lines of the log are lost" in run.log()


def test_python_in_the_entrypoint_does_not_hold_its_output_back(tmp_path: Path) -> None:
    with (
        control_plane(["python3", "-c", "import time; print('now'); time.sleep(60)"]) as plane,
        supervised(tmp_path, plane) as run,
    ):
        plane.wait_for(lambda: plane.text() == ["now"])
        assert run.process.poll() is None


def test_who_prints_the_environment_shows_no_secret(tmp_path: Path) -> None:
    script = "echo $DET_SESSION_TOKEN; env >&2; cat $RESOLUTE_RUN_DIR/token; echo; exit 1"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        shown = [*plane.text(), plane.exits[0].failure]
        assert shown[0] == "***"
        assert any(text == "DET_SESSION_TOKEN=***" for text in shown)
        assert any(text == "RESOLUTE_COLLECTIVE_KEY=***" for text in shown)
        assert not any("token-" in text for text in shown)


def test_a_secret_in_a_line_that_is_too_long_is_not_parted_but_masked(tmp_path: Path) -> None:
    # Wherever the cut after 8 KiB would fall within the secret; from a rank there is a prefix before it too.
    show = "import os; t = os.environ['DET_SESSION_TOKEN']\n"
    show += "for n in range(8170, 8193): print('x' * n + t + 'y' * 9000)\n"
    (tmp_path / "show.py").write_text(show)
    command = f"python3 {tmp_path}/show.py"
    script = f"{command}; python3 -m resolute_launch.wrap_rank 0 {command}; {command} >&2; exit 1"
    with control_plane(script) as plane, supervised(tmp_path, plane) as run:
        assert run.wait() == 0
        shown = "".join([*plane.text(), plane.exits[0].failure])
        assert "token" not in shown
        assert shown.count("***") >= 3 * 23


def test_a_secret_that_a_rank_writes_in_two_parts_is_masked(tmp_path: Path) -> None:
    parts = "import os, sys, time; t = os.environ['DET_SESSION_TOKEN']; sys.stderr.write('a ' + t[:5]); "
    parts += "sys.stderr.flush(); time.sleep(0.2); sys.stderr.write(t[5:] + ' z\\n'); sys.exit(3)"
    (tmp_path / "parts.py").write_text(parts)
    command = f"python3 {tmp_path}/parts.py"
    with (
        control_plane(f"{command}; python3 -m resolute_launch.wrap_rank 0 {command}") as plane,
        supervised(tmp_path, plane) as run,
    ):
        assert run.wait() == 0
        assert plane.text() == ["a *** z", "a *** z"]
        assert "rank 0 ended with exit code 3\na *** z" in plane.exits[0].failure
