"""Disks are asked beside the event loop, and one that does not answer is named instead of waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.clocks import ManualClock

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_serving.observability.asked_disks import AskedDisks

SECONDS = 60.0


def test_a_disk_that_hangs_is_named_and_asked_by_one_thread(tmp_path: Path) -> None:
    answers, asked = threading.Event(), list[int]()

    def hang(_: Iterable[Path]) -> list[str]:
        asked.append(threading.get_ident())
        assert answers.wait(SECONDS)
        return ["full"]

    async def scenario() -> None:
        clock = ManualClock()
        disks = AskedDisks([tmp_path], clock=clock, full=hang, seconds=0.05)
        for _ in range(5):
            (problem,) = (await asyncio.wait_for(disks.problems(), SECONDS)).now
            assert problem.startswith(f"the disks of {tmp_path} do not all answer")
            clock.advance(100)
        assert "asked 400 seconds ago" in problem
        assert len(asked) == 1
        answers.set()
        disks._seconds = SECONDS + clock.monotonic()
        assert (await disks.problems()).now == ["full"]

    asyncio.run(scenario())


def test_disks_that_answer_are_asked_again(tmp_path: Path) -> None:
    said = iter([["full"], []])
    disks = AskedDisks([tmp_path], clock=SYSTEM_CLOCK, full=lambda _: next(said), seconds=SECONDS)

    async def scenario() -> None:
        assert (await disks.problems()).now == ["full"]
        assert (await disks.problems()).now == []

    asyncio.run(scenario())


def test_a_failure_is_the_callers(tmp_path: Path) -> None:
    def fail(_: Iterable[Path]) -> list[str]:
        raise OSError("input/output error")

    disks = AskedDisks([tmp_path], clock=SYSTEM_CLOCK, full=fail, seconds=SECONDS)
    with pytest.raises(OSError, match="input/output error"):
        asyncio.run(disks.problems())
