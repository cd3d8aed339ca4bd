"""Each failure of the table in the docs gets the sentence that stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resolute.contracts.spool.format import Line, Stdtype
from resolute_launch.gpus.xid_errors import XidErrors
from resolute_launch.ranks.causes import CAUSES, cause_of
from resolute_launch.ranks.failures import OutputTail, RankEnd, describe

PAGE = Path(__file__).parents[4] / "docs" / "failures.md"
ROWS = [
    (int(row["code"]), row["line"], row["sentence"])
    for row in re.finditer(
        r"^\| (?P<code>\d+) \| `(?P<line>[^`]+)` \| (?P<sentence>.+) \|$", PAGE.read_text(), re.MULTILINE
    )
]
XID = "6,1234,7000000,-;NVRM: Xid (PCI:{gpu}): {number}, pid=77, name=python3"
OURS = "0000:3B:00"
UUID = "GPU-5f2c1a4e-0000-4000-8000-00000000003b"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "kmsg"


def said(*lines: str) -> OutputTail:
    tail = OutputTail()
    tail.add([Line(0.0, Stdtype.STDERR, f"[rank=3] {line}".encode()) for line in lines])
    return tail


def test_the_table_has_every_kind_of_failure() -> None:
    assert len(ROWS) >= 30
    assert len({sentence for _, _, sentence in ROWS}) == len(ROWS)
    lines = [line for _, line, _ in ROWS]
    missing = [cause.pattern.pattern for cause in CAUSES if not any(map(cause.pattern.search, lines))]
    assert missing == []


@pytest.mark.parametrize(("code", "line", "sentence"), ROWS, ids=[line[:40] for _, line, _ in ROWS])
def test_a_failure_ends_with_its_sentence(code: int, line: str, sentence: str) -> None:
    traceback = ("Traceback (most recent call last):", '  File "train.py", line 3, in <module>', line)
    first = RankEnd(rank=3, exit_code=code, time=1.0)
    failure = describe(1, said(*traceback), first, node="gpu-7")
    assert failure.splitlines()[-1] == sentence
    assert failure.splitlines()[-2] == line


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        (1, ["ValueError: the rate is below zero"]),
        # What was caught before is no reason to end.
        (1, ["ConnectionError: timed out", "trying again", "KeyError: 'lr'"]),
        (137, ["OSError: [Errno 28] No space left on device"]),
        (143, ["Connection reset by peer"]),
        (1, []),
    ],
)
def test_what_is_the_affair_of_the_script_gets_no_sentence(code: int, lines: list[str]) -> None:
    assert cause_of(code, "\n".join(lines), node="gpu-7") == ""


def xid_of(log: Path, *, begin: float = 1.0, now: float = 10.0, ago: float = 0.0) -> str:
    """What a run that began and failed at some seconds since the boot finds of errors of its GPU."""
    times = iter((begin, now))
    return XidErrors([UUID], log=log, gpus=log.parent / "gpus", now=lambda: next(times)).latest(ago=ago)


def test_an_error_of_the_gpu_in_the_kernels_log_counts_where_the_script_names_no_cause(log: Path) -> None:
    log.write_text(XID.format(gpu=OURS, number=79) + "\n")
    first, xid = RankEnd(rank=3, exit_code=1, time=1.0), xid_of(log)
    lost = said("RuntimeError: CUDA error: unspecified launch failure")
    assert "Xid 79 of a GPU; this points at node gpu-7" in describe(1, lost, first, node="gpu-7", xid=xid)
    failure = describe(1, said("No module named 'lightning'"), first, node="gpu-7", xid=xid)
    assert failure.splitlines()[-1].startswith("Python has no module lightning")


def test_only_errors_shortly_before_a_failure_may_have_caused_it(log: Path) -> None:
    log.write_text(XID.format(gpu=OURS, number=79) + "\n")
    assert "79" in xid_of(log, now=66.0)
    assert "79" in xid_of(log, now=100.0, ago=40.0)
    assert xid_of(log, now=68.0) == ""
    assert xid_of(log, begin=8.0) == ""
    assert xid_of(log.parent / "missing") == ""


def test_errors_that_scripts_cause_point_at_no_node_and_hide_no_others(log: Path) -> None:
    log.write_text(XID.format(gpu=OURS, number=31) + "\n")
    assert xid_of(log) == ""
    log.write_text("\n".join(XID.format(gpu=OURS, number=number) for number in (79, 43)))
    assert "79" in xid_of(log)


def test_errors_of_the_gpus_of_others_do_not_count(log: Path) -> None:
    log.write_text(XID.format(gpu="0000:86:00", number=79) + "\n")
    assert "79" in xid_of(log)  # Nobody knows which GPU is the run's.
    information = log.parent / "gpus" / "0000:3b:00.0" / "information"
    information.parent.mkdir(parents=True)
    information.write_text(f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUID}\nBus Location: \t 0000:3b:00.0\n")
    assert xid_of(log) == ""
    log.write_text(XID.format(gpu=OURS, number=79) + "\n")
    assert "79" in xid_of(log)


def test_a_kill_for_lack_of_memory_is_said_at_the_end_too() -> None:
    memory = "the container used up to 31.0 GiB of its limit of 32.0 GiB"
    failure = describe(137, said("epoch 3"), RankEnd(rank=3, exit_code=137, time=1.0), memory=memory)
    assert failure.splitlines()[-1].startswith(f"rank 3 was killed for lack of memory: {memory}; use smaller")
