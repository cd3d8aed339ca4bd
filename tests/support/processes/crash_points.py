"""A process that is killed at one of its steps."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CrashPoints:
    """Counts the steps of a process, and kills it at one of them, or at none if that is 0."""

    def __init__(self, fatal: int = 0) -> None:
        self._fatal = fatal
        self.taken = 0

    def __call__(self) -> None:
        self.taken += 1
        if self.taken == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type | ModuleType, name: str) -> None:
        """Makes a method or a function a step: one may die before it, and after it."""
        method = getattr(owner, name)
        if asyncio.iscoroutinefunction(method):

            @functools.wraps(method)
            async def later(*arguments: Any, **options: Any) -> Any:
                self()
                result = await method(*arguments, **options)
                self()
                return result

            setattr(owner, name, later)
            return

        @functools.wraps(method)
        def now(*arguments: Any, **options: Any) -> Any:
            self()
            result = method(*arguments, **options)
            self()
            return result

        setattr(owner, name, now)


def steps_of(work: Callable[[CrashPoints], object]) -> int:
    """Does it to its end in a process of its own; returns how many steps that took."""
    reader, writer = os.pipe()

    def counted() -> None:
        steps = CrashPoints()
        work(steps)
        os.write(writer, str(steps.taken).encode())

    try:
        assert run_in_child(counted) == 0, "the work failed by itself"
        return int(os.read(reader, 32))
    finally:
        os.close(reader)
        os.close(writer)


def kill_at_step(fatal: int, work: Callable[[CrashPoints], object]) -> None:
    """Does it in a process that is killed at one of its steps; fails if it ends in any other way."""
    status = run_in_child(lambda: work(CrashPoints(fatal)))
    assert status == -signal.SIGKILL, f"ended with {status} before step {fatal}"


def run_in_child(work: Callable[[], object]) -> int:
    """Does it in a process of its own; returns its status, or the signal that ended it below zero."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)
