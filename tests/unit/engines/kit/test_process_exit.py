from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from resolute.contracts.processes import ProcessIdentity
from resolute_engines.kit.run_directories import process_exit
from resolute_engines.kit.run_directories.process_exit import wait_for_exit


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_end_of_a_process_is_seen_at_once() -> None:
    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec("sleep", "60")
        waiter = asyncio.create_task(wait_for_exit(ProcessIdentity.of(process.pid)))
        await asyncio.sleep(0)
        assert not waiter.done()
        process.kill()
        await asyncio.wait_for(waiter, 60)
        await process.wait()

    asyncio.run(scenario())


def test_a_wait_that_is_given_up_leaves_nothing_open() -> None:
    async def scenario() -> None:
        before = open_descriptors()
        waiter = asyncio.create_task(wait_for_exit(ProcessIdentity.of(os.getpid())))
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        assert open_descriptors() == before

    asyncio.run(scenario())


@pytest.mark.parametrize("who", ["nobody", "a dead one", "a stranger with its id", "someone without pidfds"])
def test_where_an_end_cannot_be_known_it_waits_a_moment(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_exit, "POLL_SECONDS", 0.01)
    mine = ProcessIdentity.of(os.getpid())
    assert mine is not None
    process: ProcessIdentity | None = mine
    if who == "nobody":
        process = None
    elif who == "a dead one":
        dead = subprocess.Popen(["true"])
        process = ProcessIdentity.of(dead.pid)
        dead.wait()
    elif who == "a stranger with its id":
        process = replace(mine, start_time=mine.start_time + 1)
    else:
        monkeypatch.delattr(os, "pidfd_open")
    asyncio.run(asyncio.wait_for(wait_for_exit(process), 60))
