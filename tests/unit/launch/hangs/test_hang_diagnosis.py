"""The sentence that says who waits for whom, from stacks as processes write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from resolute import core
from resolute.contracts.processes import ProcessIdentity
from resolute_launch.hangs.diagnosis import diagnose
from resolute_launch.hangs.members import Member
from resolute_launch.hangs.roll_call import Answer, RankAnswer
from resolute_launch.hangs.stacks import Doing, Frame, main_stack, parse_stacks
from resolute_launch.ranks.failures import RankEnd

WORK = Path("/runs/1/work")
TORCH = "/venv/lib/python3.11/site-packages/torch"
REDUCE = f"""\
  File "{TORCH}/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "{TORCH}/distributed/c10d_logger.py", line 83 in wrapper
  File "{WORK}/train.py", line 88 in step
  File "{WORK}/train.py", line 12 in <module>
"""
BARRIER = f"""\
  File "{TORCH}/distributed/distributed_c10d.py", line 99 in barrier
  File "{TORCH}/distributed/c10d_logger.py", line 83 in wrapper
  File "{WORK}/train.py", line 95 in <module>
"""
BACKWARD = f"""\
  File "{TORCH}/autograd/graph.py", line 865 in _engine_run_backward
  File "{TORCH}/autograd/__init__.py", line 360 in backward
  File "{TORCH}/_tensor.py", line 647 in backward
  File "{WORK}/train.py", line 70 in <module>
"""
READING = f"""\
  File "{WORK}/pipeline/data.py", line 40 in read_shard
  File "{WORK}/train.py", line 12 in <module>
"""
LOADER = f"""\
  File "/usr/lib/python3.11/selectors.py", line 415 in select
  File "/usr/lib/python3.11/multiprocessing/connection.py", line 948 in wait
  File "{TORCH}/utils/data/dataloader.py", line 1275 in _try_get_data
  File "{TORCH}/utils/data/dataloader.py", line 701 in __next__
  File "{WORK}/train.py", line 60 in <module>
"""
WORKER = f"""\
  File "{WORK}/data.py", line 28 in take_twice
  File "{WORK}/data.py", line 22 in __getitem__
  File "{TORCH}/utils/data/_utils/fetch.py", line 52 in fetch
  File "{TORCH}/utils/data/_utils/worker.py", line 349 in _worker_loop
  File "/usr/lib/python3.11/multiprocessing/process.py", line 108 in run
  File "{WORK}/train.py", line 60 in <module>
"""
IDLE_WORKER = f"""\
  File "/usr/lib/python3.11/multiprocessing/queues.py", line 113 in get
  File "{TORCH}/utils/data/_utils/worker.py", line 302 in _worker_loop
  File "/usr/lib/python3.11/multiprocessing/process.py", line 108 in run
  File "{WORK}/train.py", line 60 in <module>
"""
THREAD = """\
Thread 0x00007ff444a0d6c0 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 331 in wait
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

"""


def answer(calls: str, *, pid: int = 1, rank: int | None = None, state: str = "S") -> Answer:
    text = f"{THREAD}Current thread 0x00007f1cd1fd1b80 (most recent call first):\n{calls}" if calls else ""
    member = Member(
        identity=ProcessIdentity(pid, 1, "boot"), parent=0, rank=rank, state=state, command="", caught=0
    )
    return Answer(member, text)


def rank(number: int, calls: str, *children: str, state: str = "S") -> RankAnswer:
    first = answer(calls, pid=10 * number + 1, rank=number, state=state)
    others = tuple(answer(child, pid=10 * number + 2 + at, rank=number) for at, child in enumerate(children))
    return RankAnswer(number, first, others)


def sentence(*ranks: RankAnswer, ends: tuple[RankEnd, ...] = ()) -> tuple[str, tuple[int, ...]]:
    diagnosis = diagnose(ranks, ends, work=WORK, minutes="14 minutes")
    return diagnosis.sentence, diagnosis.guilty


def test_those_who_wait_come_first_and_the_one_that_they_wait_for_last() -> None:
    said, guilty = sentence(rank(0, REDUCE), rank(1, READING), rank(2, REDUCE), rank(3, REDUCE))
    assert said == (
        "ranks 0, 2 and 3 wait in all_reduce at train.py:88; "
        "rank 1 is in read_shard at pipeline/data.py:40, 14 minutes"
    )
    assert guilty == (1,)


def test_code_in_a_home_that_is_called_like_the_platform_is_the_persons_own() -> None:
    stack = main_stack(parse_stacks(answer(READING.replace("/runs/", "/srv/resolute/runs/")).text))
    assert stack is not None
    assert (stack.call, stack.frames[0].of_library) == ("read_shard", False)
    assert Frame(core.__file__, 1, "init").of_library


def test_a_worker_of_a_data_loader_is_named_with_its_rank() -> None:
    said, guilty = sentence(rank(0, REDUCE), rank(1, LOADER, IDLE_WORKER, WORKER))
    assert said == (
        "rank 0 waits in all_reduce at train.py:88; rank 1 waits for a batch at train.py:60, "
        "whose worker is in take_twice at data.py:28, 14 minutes"
    )
    assert guilty == (1,)


def test_a_backward_pass_waits_for_the_others_where_one_does_something_else() -> None:
    said, guilty = sentence(rank(0, BACKWARD), rank(1, BACKWARD), rank(2, READING))
    assert said.startswith("ranks 0 and 1 are in backward at train.py:70; rank 2 is in read_shard")
    assert guilty == (2,)


def test_of_ranks_that_all_wait_the_fewer_wait_for_the_wrong_thing() -> None:
    said, guilty = sentence(rank(0, REDUCE), rank(1, REDUCE), rank(2, BARRIER), rank(3, REDUCE))
    assert said.endswith("rank 2 waits in barrier at train.py:95, 14 minutes")
    assert guilty == (2,)
    assert sentence(rank(0, REDUCE), rank(1, BARRIER))[1] == ()
    assert sentence(rank(0, REDUCE), rank(1, REDUCE))[1] == ()


def test_a_rank_that_has_ended_is_named_by_its_end() -> None:
    ends = (RankEnd(rank=1, exit_code=0, time=1.0), RankEnd(rank=0, exit_code=1, time=1.0))
    said, guilty = sentence(rank(0, REDUCE), rank(2, REDUCE), ends=ends)
    # Rank 0 was started again after its end.
    assert said == (
        "ranks 0 and 2 wait in all_reduce at train.py:88; rank 1 has ended with exit code 0, 14 minutes"
    )
    assert guilty == (1,)


@pytest.mark.parametrize(
    ("state", "words"), [("T", "is stopped by a signal"), ("D", "is blocked within the kernel")]
)
def test_processes_that_do_not_answer_are_described_by_their_state(state: str, words: str) -> None:
    said, guilty = sentence(rank(0, REDUCE), rank(1, "", state=state))
    assert f"rank 1 {words}" in said
    assert guilty == (1,)


def test_a_script_alone_has_no_rank() -> None:
    assert sentence(RankAnswer(0, answer(READING), ())) == (
        "the script is in read_shard at pipeline/data.py:40, 14 minutes",
        (0,),
    )
    assert sentence() == ("no process of the run is left to ask, 14 minutes", ())


def test_the_only_rank_that_is_left_is_named() -> None:
    assert sentence(rank(3, READING))[0] == "rank 3 is in read_shard at pipeline/data.py:40, 14 minutes"
    ends = (RankEnd(rank=5, exit_code=1, time=1.0),)
    assert sentence(ends=ends)[0] == "rank 5 has failed: it ended with exit code 1, 14 minutes"


def test_many_ranks_are_said_shortly() -> None:
    ranks = [rank(number, READING if number == 5 else REDUCE) for number in range(64)]
    assert sentence(*ranks)[0].startswith("ranks 0-4 and 6-63 wait in all_reduce")


@pytest.mark.parametrize(
    ("calls", "doing"),
    [
        (REDUCE, Doing.COLLECTIVE),
        (BACKWARD, Doing.BACKWARD),
        (LOADER, Doing.LOADER),
        (IDLE_WORKER, Doing.IDLE_WORKER),
        (WORKER, Doing.OTHER),
        (READING, Doing.OTHER),
        ("  <no Python frame>\n", None),
    ],
)
def test_a_stack_says_what_its_thread_does(calls: str, doing: Doing | None) -> None:
    stack = main_stack(parse_stacks(answer(calls).text))
    assert (None if stack is None else stack.doing) is doing
