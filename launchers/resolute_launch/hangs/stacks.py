"""Parses stacks in the format of ``faulthandler``, and derives the activity of a process from its stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

import resolute
import resolute_launch

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+.*\(most recent call first\):$")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
# By their places: a home of the platform may be called like its packages, and the code of runs lies in it.
_OURS = "|".join(re.escape(f"{package.__path__[0]}/") for package in (resolute, resolute_launch))
_LIBRARY = re.compile(rf"/(?:site|dist)-packages/|/lib(?:64)?/python3|^<frozen |^(?:{_OURS})|<string>")
_COLLECTIVE_FILE = re.compile(
    r"/torch/distributed/|/horovod/|/deepspeed/(?:comm|utils)/|/resolute/core/distributed/|/mpi4py/"
)
_COLLECTIVE = re.compile(
    r"(?:monitored_)?barrier|(?:all_?|batch_)?(?:reduce|gather|to_?all|broadcast|scatter)\w*|i?send\w*|i?recv\w*"
    r"|synchronize|wait|poll|new_group|init_process_group|destroy_process_group|\w*rendezvous"
    r"|_store_based_barrier|exchange"
)
_BACKWARD_FILE = re.compile(r"/torch/autograd/|/torch/_tensor\.py$")
_LOADER_FILE = re.compile(r"/torch/utils/data/")
_WORKER_MAIN = "_worker_loop"
"""The first function of a worker of a data loader."""
_THREAD_MAIN = "_bootstrap"
"""Begins every thread but the first."""


class Doing(Enum):
    """The activity of a thread."""

    COLLECTIVE = "waits for the other ranks"
    BACKWARD = "is in a backward pass, where it may wait for the other ranks"
    LOADER = "waits for a batch of a data loader"
    IDLE_WORKER = "is a worker of a data loader that waits for work"
    OTHER = "something of its own"


@dataclass(frozen=True, slots=True)
class Frame:
    """One call."""

    file: str
    line: int
    function: str

    @property
    def of_library(self) -> bool:
        """Whether it is no code of the person who trains."""
        return _LIBRARY.search(self.file) is not None


@dataclass(frozen=True, slots=True)
class Stack:
    """The calls of one thread, the innermost first."""

    frames: tuple[Frame, ...]

    @property
    def doing(self) -> Doing:
        """What the thread is busy with, by the calls inside of the innermost one of the person's own."""
        inner = self._inner
        if self._collective(inner) is not None:
            return Doing.COLLECTIVE
        if any(frame.function == _WORKER_MAIN for frame in self.frames):
            return Doing.OTHER if self._own is not None else Doing.IDLE_WORKER
        if any(_LOADER_FILE.search(frame.file) for frame in inner):
            return Doing.LOADER
        if any(_BACKWARD_FILE.search(frame.file) and "backward" in frame.function for frame in inner):
            return Doing.BACKWARD
        return Doing.OTHER

    @property
    def call(self) -> str:
        """What is called, for people: the collective, else the function of the person's own."""
        collective = self._collective(self._inner)
        if collective is not None:
            return collective.function
        if self.doing is Doing.BACKWARD:
            return "backward"
        frame = self.place
        return "" if frame is None or frame.function == "<module>" else frame.function

    @property
    def place(self) -> Frame | None:
        """The innermost call of the person's own; the innermost of all where there is none."""
        return self._own or (self.frames[0] if self.frames else None)

    @property
    def _own(self) -> Frame | None:
        # Behind its first function a forked worker has the calls in which its parent forked it.
        of_process = takewhile(lambda frame: frame.function != _WORKER_MAIN, self.frames)
        return next((frame for frame in of_process if not frame.of_library), None)

    @property
    def _inner(self) -> Sequence[Frame]:
        return tuple(takewhile(lambda frame: frame.of_library, self.frames))

    @staticmethod
    def _collective(inner: Sequence[Frame]) -> Frame | None:
        """The outermost function that is one, as the person called it."""
        of_library = (frame for frame in reversed(inner) if _COLLECTIVE_FILE.search(frame.file))
        return next((frame for frame in of_library if _COLLECTIVE.fullmatch(frame.function)), None)


def parse_stacks(text: str) -> tuple[Stack, ...]:
    """Reads the stacks of all threads of a process, in the order of the text; other lines are left out."""
    stacks: list[list[Frame]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            stacks.append([])
        elif stacks and (match := _FRAME.match(line)):
            stacks[-1].append(Frame(match["file"], int(match["line"]), match["function"]))
    return tuple(Stack(tuple(frames)) for frames in stacks)


def main_stack(stacks: Sequence[Stack]) -> Stack | None:
    """The stack of the first thread; None for none."""
    first = [stack for stack in stacks if stack.frames and stack.frames[-1].function != _THREAD_MAIN]
    return first[-1] if first else None
