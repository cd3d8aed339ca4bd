"""Which processes are asked where they are, and which rank an answer belongs to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from resolute.contracts.processes import ProcessIdentity, ProcessTree
from resolute_launch import interpreter
from resolute_launch.hangs.members import Member
from resolute_launch.hangs.roll_call import Answer, by_rank, call_roll


def answer(pid: int, *, parent: int, rank: int | None = None) -> Answer:
    member = Member(
        identity=ProcessIdentity(pid, 1, "boot"), parent=parent, rank=rank, state="S", command="", caught=0
    )
    return Answer(member, "")


SHELL = answer(1, parent=0)


def pids(*answers: Answer, ranked: bool = False) -> dict[int, list[int]]:
    return {
        found.rank: sorted(one.member.identity.pid for one in (found.first, *found.children))
        for found in by_rank(answers, ranked=ranked)
    }


def test_a_shell_stands_for_no_rank() -> None:
    # Rank 0 has ended, or is in another container.
    assert pids(SHELL, answer(2, parent=1, rank=4), answer(3, parent=1, rank=5)) == {4: [2], 5: [3]}


def test_processes_without_a_rank_are_of_none_once_a_rank_has_ended() -> None:
    assert pids(SHELL, ranked=True) == {}


def test_processes_of_a_run_without_ranks_are_rank_0() -> None:
    assert pids(SHELL, answer(2, parent=1)) == {0: [1, 2]}


def test_a_process_that_has_lost_its_rank_is_of_the_one_that_it_comes_from() -> None:
    ranks = answer(2, parent=1, rank=0), answer(3, parent=1, rank=1)
    assert pids(SHELL, *ranks, answer(4, parent=3), answer(5, parent=4)) == {0: [2], 1: [3, 4, 5]}
    # Ids that name each other, as after one was used again.
    assert pids(*ranks, answer(6, parent=7), answer(7, parent=6)) == {0: [2], 1: [3]}


def test_a_process_answers_where_a_link_leads_to_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    run = tmp_path / "home"
    run.symlink_to(tmp_path / "disk")
    environment = {
        **os.environ,
        "RESOLUTE_RUN_DIR": str(run),
        "PYTHONPATH": interpreter.__path__[0],
        "RESOLUTE_OVERLAY": "",
    }
    script = "import sys\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tree = ProcessTree(leader=ProcessIdentity.of(process.pid), variable=b"RESOLUTE_RUN_DIR=" + bytes(run))
        (rank,) = call_roll(tree, run / "stacks", ranked=False)
        process.communicate()
    assert "most recent call first" in rank.first.text
