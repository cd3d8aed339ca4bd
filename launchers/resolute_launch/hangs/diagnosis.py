"""Describes in one sentence which ranks wait, and for which ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolute_launch.hangs.roll_call import Answer, RankAnswer
from resolute_launch.hangs.stacks import Doing, Frame
from resolute_launch.ranks.failures import RankEnd, describe_exit

_MOST_GROUPS = 6
_STATES = {
    "T": "is stopped by a signal (SIGSTOP)",
    "t": "is stopped by a debugger",
    "D": "is blocked within the kernel, as by a disk or a network file system that does not answer",
    "Z": "has ended and was not reaped",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The cause of a hang: the ranks that keep a run waiting."""

    sentence: str
    """For people: those who wait, then those who keep them waiting."""
    guilty: tuple[int, ...]
    """Ranks that keep the others waiting; empty where that is unknown."""


@dataclass(frozen=True, slots=True)
class _Posture:
    """The common activity of a group of ranks."""

    waits: bool
    """Whether they wait for other ranks."""
    text: str
    """What they do, with ``{s}`` where a verb of one ends with an s."""


def diagnose(ranks: Sequence[RankAnswer], ends: Iterable[RankEnd], *, work: Path, minutes: str) -> Diagnosis:
    """Finds it by the answers of all ranks.

    Args:
        ranks: The ranks that have processes.
        ends: How others ended.
        work: Directory of the code, by which files are named.
        minutes: For how long nothing has moved, for people.
    """
    postures = _postures(ranks, work)
    alive = set(postures)
    postures.update({end.rank: _Posture(False, _end_text(end)) for end in ends if end.rank not in alive})
    if not postures:
        return Diagnosis(f"no process of the run is left to ask, {minutes}", ())
    groups = _groups(postures)
    guilty = _guilty(groups)
    if not any(_has_rank(rank) for rank in ranks) and len(postures) == len(ranks) == 1:
        ((posture, _),) = groups
        return Diagnosis(
            f"the script {posture.text.replace('{s}', 's').replace('{is}', 'is')}, {minutes}", tuple(postures)
        )
    # Those who wait come first, those whom they wait for last.
    groups.sort(key=lambda group: (set(group[1]) <= set(guilty), min(group[1])))
    parts = [_part(posture, members) for posture, members in groups[:_MOST_GROUPS]]
    if len(groups) > _MOST_GROUPS:
        parts.append(f"{len(groups) - _MOST_GROUPS} more groups of ranks are elsewhere")
    return Diagnosis(f"{'; '.join(parts)}, {minutes}", guilty)


def _has_rank(rank: RankAnswer) -> bool:
    """Whether it says so itself; the only process of a script alone does not."""
    return any(answer.member.rank is not None for answer in (rank.first, *rank.children))


def _end_text(end: RankEnd) -> str:
    failed = f"has failed: it {describe_exit(end.exit_code)}"
    return failed if end.exit_code else "has ended with exit code 0"


def _postures(ranks: Sequence[RankAnswer], work: Path) -> dict[int, _Posture]:
    someone_else = any(_doing(rank) in {Doing.OTHER, Doing.LOADER, None} for rank in ranks)
    postures = {}
    for rank in ranks:
        doing = _doing(rank)
        waits = doing is Doing.COLLECTIVE or (doing is Doing.BACKWARD and someone_else)
        postures[rank.rank] = _Posture(waits, _text(rank, work))
    return postures


def _doing(rank: RankAnswer) -> Doing | None:
    stack = rank.first.stack
    return None if stack is None else stack.doing


def _text(rank: RankAnswer, work: Path) -> str:
    stack = rank.first.stack
    state = rank.first.member.state
    if stack is None or state in "Tt":
        where = rank.first.member.waits_in
        text = _STATES.get(state, "does not say where it is")
        return f"{text} ({where})" if where and state == "D" else text
    place = _place(stack.place, work)
    doing, call = stack.doing, stack.call
    if doing is Doing.COLLECTIVE:
        return f"wait{{s}} in {call} at {place}"
    if doing is Doing.LOADER:
        return f"wait{{s}} for a batch at {place}{_worker(rank.children, work)}"
    return f"{{is}} in {call} at {place}" if call else f"{{is}} at {place}"


def _worker(children: Sequence[Answer], work: Path) -> str:
    """Says where a worker of a data loader is that does not deliver."""
    for child in children:
        stack, state = child.stack, child.member.state
        if state in _STATES:
            return f", whose worker {_STATES[state]}"
        if stack is not None and stack.doing is Doing.OTHER:
            called = f"in {stack.call} " if stack.call else ""
            return f", whose worker is {called}at {_place(stack.place, work)}"
    return ""


def _place(frame: Frame | None, work: Path) -> str:
    if frame is None:
        return "an unknown place"
    path = Path(frame.file)
    name = path.relative_to(work) if path.is_relative_to(work) else path.name
    return f"{name}:{frame.line}"


def _groups(postures: Mapping[int, _Posture]) -> list[tuple[_Posture, list[int]]]:
    members: dict[_Posture, list[int]] = {}
    for rank, posture in sorted(postures.items()):
        members.setdefault(posture, []).append(rank)
    return list(members.items())


def _guilty(groups: Sequence[tuple[_Posture, list[int]]]) -> tuple[int, ...]:
    """Those who do not wait; where all do the same kind of thing, those who do it elsewhere than most."""
    own = [rank for posture, members in groups if not posture.waits for rank in members]
    waiting = sum(len(members) for posture, members in groups if posture.waits)
    if own and waiting:
        return tuple(sorted(own))
    sizes = Counter({index: len(members) for index, (_, members) in enumerate(groups)})
    (most, size), *others = sizes.most_common()
    if not others or others[0][1] == size:
        return ()
    return tuple(
        sorted(rank for index, (_, members) in enumerate(groups) if index != most for rank in members)
    )


def _part(posture: _Posture, members: Sequence[int]) -> str:
    one = len(members) == 1
    subject = f"rank {members[0]}" if one else f"ranks {_listed(members)}"
    text = posture.text.replace("{s}", "s" if one else "").replace("{is}", "is" if one else "are")
    if not one and text.startswith(("is ", "has ", "does ")):
        verb, rest = text.split(" ", 1)
        text = f"{ {'is': 'are', 'has': 'have', 'does': 'do'}[verb] } {rest}"
    return f"{subject} {text}"


def _listed(numbers: Sequence[int]) -> str:
    """``0, 2 and 3``; runs of more than two as ``0-5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    words = [
        word
        for run in runs
        for word in ([f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run])
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
