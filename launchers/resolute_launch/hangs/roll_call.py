"""Asks the processes of a run for their stacks, one after the other."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.files.regular_file import open_regular
from resolute.contracts.processes import ProcessTree
from resolute_launch.hangs.members import Member, members_of
from resolute_launch.hangs.stacks import Stack, main_stack, parse_stacks
from resolute_launch.interpreter._resolute_stacks import STACK_SIGNAL

_ANSWER_SECONDS = 2.0
_QUIET_SECONDS = 0.03
"""A process that has written nothing for so long has finished its answer."""
_POLL_SECONDS = 0.005
_TOTAL_SECONDS = 30.0
_MOST_PROCESSES = 512
_LONGEST = 64 * 1024
"""Bytes that are kept of the stacks of one process."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one process."""

    member: Member
    text: str
    """Its stacks; empty where it did not answer."""

    @property
    def stack(self) -> Stack | None:
        """The stack of its first thread."""
        return main_stack(parse_stacks(self.text))


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """The answers of a rank: of its first process, and of the processes that it has started."""

    rank: int
    first: Answer
    children: tuple[Answer, ...]


def call_roll(tree: ProcessTree, stacks_file: Path, *, ranked: bool) -> list[RankAnswer]:
    """Asks all processes of a run.

    Only those are asked that handle the signal, and have the file open that their answer goes to: a process
    that closed it would write into whatever has its descriptor now.

    Args:
        tree: The run's processes.
        stacks_file: Takes the answers; emptied.
        ranked: Whether the run is known to have ranks; it is anyway if any process here has one.

    Returns:
        The ranks that have processes here, in order; a run without ranks is rank 0.
    """
    members = members_of(tree)[:_MOST_PROCESSES]
    stacks_file = stacks_file.resolve()  # as the kernel names open files, whatever links lead there
    with contextlib.suppress(OSError):
        os.truncate(stacks_file, 0)
    deadline = time.monotonic() + _TOTAL_SECONDS
    answers = [Answer(member, _ask(member, stacks_file, deadline)) for member in _first_ones_first(members)]
    return by_rank(answers, ranked=ranked)


def _first_ones_first(members: Sequence[Member]) -> list[Member]:
    pids = {member.identity.pid for member in members}
    return sorted(members, key=lambda member: (member.parent in pids, member.identity.pid))


def _ask(member: Member, stacks_file: Path, deadline: float) -> str:
    if time.monotonic() > deadline or not member.handles(STACK_SIGNAL):
        return ""
    if not member.has_open(stacks_file):
        return ""
    begin = stacks_file.stat().st_size
    try:
        if not member.identity.send(STACK_SIGNAL):
            return ""
        end = _wait_for_answer(stacks_file, begin)
        with open_regular(stacks_file) as file:
            file.seek(begin)
            return file.read(min(end - begin, _LONGEST)).decode(errors="replace")
    except OSError:
        return ""


def _wait_for_answer(stacks_file: Path, begin: int) -> int:
    """Waits until a process has answered; returns the size of the file."""
    size, asked = begin, time.monotonic()
    grew = asked
    while True:
        time.sleep(_POLL_SECONDS)
        now, size_now = time.monotonic(), stacks_file.stat().st_size
        if size_now > size:
            size, grew = size_now, now
        answered = size > begin and now - grew > _QUIET_SECONDS
        if answered or now - asked > _ANSWER_SECONDS:
            return size


def by_rank(answers: Sequence[Answer], *, ranked: bool) -> list[RankAnswer]:
    """Sorts answers by ranks.

    Where there are ranks, a process without one is of the rank that it comes from. One that comes from none,
    such as the shell that started the launcher, is left out: it must not stand for a rank that has ended.

    Args:
        answers: Of all processes.
        ranked: Whether the run is known to have ranks.
    """
    members = {answer.member.identity.pid: answer.member for answer in answers}
    ranked = ranked or any(member.rank is not None for member in members.values())
    sorted_out: dict[int, list[Answer]] = {}
    for answer in answers:
        rank = _rank_of(answer.member, members) if ranked else 0
        if rank is not None:
            sorted_out.setdefault(rank, []).append(answer)
    ranks = []
    for rank, those in sorted(sorted_out.items()):
        first = _first_of(those)
        ranks.append(RankAnswer(rank, first, tuple(answer for answer in those if answer is not first)))
    return ranks


def _rank_of(member: Member, members: Mapping[int, Member]) -> int | None:
    """Its rank, or that of its nearest ancestor that has one."""
    seen: set[int] = set()
    at: Member | None = member
    while at is not None and at.rank is None and at.identity.pid not in seen:
        seen.add(at.identity.pid)
        at = members.get(at.parent)
    return None if at is None else at.rank


def _first_of(answers: Sequence[Answer]) -> Answer:
    """The process that others of a rank come from: of those that run Python, if any does."""
    parents: Mapping[int, int] = {answer.member.identity.pid: answer.member.parent for answer in answers}
    python = [answer for answer in answers if answer.text] or [
        answer for answer in answers if answer.member.handles(STACK_SIGNAL)
    ]
    return min(python or answers, key=lambda answer: _depth(answer.member.identity.pid, parents))


def _depth(pid: int, parents: Mapping[int, int]) -> int:
    depth = 0
    while (parent := parents.get(pid)) in parents and depth < len(parents):
        assert parent is not None
        pid, depth = parent, depth + 1
    return depth
