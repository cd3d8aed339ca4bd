"""Worker processes: bounded in time and memory, killed with their callers, shared fairly."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Awaitable, Callable

import psutil
import pytest
from support.processes.workers import worker_processes
from support.waiting import wait_until

from resolute.errors import QuotaError, UnavailableError
from resolute_serving.workers.pool import MAX_WAITING_OF_CALLER, WorkerPool
from resolute_serving.workers.process import WorkerLimits

DEADLINE = 300.0
ENDLESS = (re.fullmatch, "(a+)+b", "a" * 64)
"""What takes longer than any test, and holds the interpreter's lock all the time."""
UNBOUNDED = WorkerLimits(cpu_seconds=None, memory_bytes=None, growth_bytes=None)


def with_pool(
    scenario: Callable[[WorkerPool], Awaitable[None]], *, processes: int = 1, limits: WorkerLimits = UNBOUNDED
) -> None:
    async def body() -> None:
        pool = WorkerPool("test", processes=processes, limits=limits)
        try:
            await asyncio.wait_for(scenario(pool), DEADLINE)
        finally:
            await pool.close()

    before = worker_processes()
    asyncio.run(body())
    assert worker_processes() <= before


def test_a_task_gives_its_value_or_raises_its_error_and_the_process_is_kept() -> None:
    async def scenario(pool: WorkerPool) -> None:
        pid = await pool.run(os.getpid)
        assert pid != os.getpid()
        with pytest.raises(ValueError, match="invalid literal"):
            await pool.run(int, "no number")
        with pytest.raises(RuntimeError, match="cannot send"):
            await pool.run(threading.Lock)
        assert await pool.run(os.getpid) == pid

    with_pool(scenario)


def test_an_idle_process_that_ends_leaves_no_zombie() -> None:
    async def scenario(pool: WorkerPool) -> None:
        pid = await pool.run(os.getpid)
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(
            wait_until, lambda: not psutil.pid_exists(pid), seconds=60, what="the process to be reaped"
        )
        assert await pool.run(os.getpid) != pid

    with_pool(scenario)


def test_a_task_that_calculates_for_too_long_is_killed() -> None:
    async def scenario(pool: WorkerPool) -> None:
        with pytest.raises(QuotaError, match="more than 1 s of a processor"):
            await pool.run(*ENDLESS)
        assert await pool.run(abs, -1) == 1

    with_pool(scenario, limits=WorkerLimits(cpu_seconds=1))


def test_a_task_that_takes_too_much_memory_fails_alone() -> None:
    async def scenario(pool: WorkerPool) -> None:
        with pytest.raises(QuotaError, match="more than 512 MiB"):
            await pool.run(bytearray, 1 << 30)
        assert await pool.run(abs, -1) == 1

    with_pool(scenario, limits=WorkerLimits(memory_bytes=512 << 20))


def test_a_process_ends_after_a_task_that_left_it_large() -> None:
    async def scenario(pool: WorkerPool) -> None:
        pid = await pool.run(os.getpid)
        await pool.run(exec, "b'x' * (96 << 20)")
        assert await pool.run(os.getpid) == pid, "what was given back does not count"
        await pool.run(exec, "import os; os.kept = b'x' * (96 << 20)")
        assert await pool.run(os.getpid) != pid

    with_pool(scenario, limits=WorkerLimits())


def test_the_process_of_a_caller_that_gives_up_is_killed() -> None:
    async def scenario(pool: WorkerPool) -> None:
        pid = await pool.run(os.getpid)
        task = asyncio.create_task(pool.run(*ENDLESS))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await pool.run(os.getpid) != pid
        assert not psutil.pid_exists(pid)

    with_pool(scenario)


def test_a_process_that_dies_is_replaced_once() -> None:
    async def scenario(pool: WorkerPool) -> None:
        os.kill(await pool.run(os.getpid), 9)
        assert await pool.run(abs, -1) == 1
        with pytest.raises(UnavailableError, match="died twice"):
            await pool.run(os.abort)

    with_pool(scenario)


def test_endless_tasks_of_one_caller_do_not_stop_others() -> None:
    async def scenario(pool: WorkerPool) -> None:
        hostile = [
            asyncio.create_task(pool.run(*ENDLESS, caller="eve")) for _ in range(MAX_WAITING_OF_CALLER + 1)
        ]
        await asyncio.sleep(0)
        with pytest.raises(QuotaError, match="calls of eve wait"):
            await pool.run(abs, -1, caller="eve")
        assert await pool.run(abs, -1, caller="ada") == 1
        assert not any(task.done() for task in hostile)
        for task in hostile:
            task.cancel()
        await asyncio.wait(hostile)
        assert await pool.run(abs, -1, caller="eve") == 1

    with_pool(scenario, processes=2)


def test_closing_kills_what_runs_and_refuses_what_waits() -> None:
    async def scenario(pool: WorkerPool) -> None:
        running = asyncio.create_task(pool.run(*ENDLESS))
        waiting = asyncio.create_task(pool.run(abs, -1))
        await asyncio.sleep(0)
        await pool.close()
        for task in (running, waiting):
            with pytest.raises(UnavailableError):
                await task
        with pytest.raises(UnavailableError, match="stops"):
            await pool.run(abs, -1)

    with_pool(scenario)
