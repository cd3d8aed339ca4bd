"""The sending of what local runs left: who waits for it may give up, and no task is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.waiting import wait_until_async

from resolute.contracts.spool.format import FILE_HEADER, METRICS_SUFFIX
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.kit.run_directories.deliveries import Deliveries


async def _nothing(container: RunContainer) -> None:
    """Nothing of it runs."""


def _named(prefix: str) -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(prefix)]


def test_waiting_for_lines_that_is_given_up_leaves_no_task(tmp_path: Path) -> None:
    names = [f"t{number}.1" for number in range(5)]
    for name in names:
        container = RunContainer(tmp_path, name, 0)
        container.run.prepare()
        container.note_loss()
        assert container.spools.lines_wait()

    async def body() -> None:
        deliveries = Deliveries(
            tmp_path, address="", log_wait=600.0, is_over=lambda _: True, until_over=_nothing
        )
        waiting = asyncio.create_task(deliveries.deliver_lines(dict.fromkeys(names, "")))
        await wait_until_async(lambda: len(_named("deliver-lines-")) == len(names))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert _named("deliver-lines-") == []
        for process in deliveries._senders:
            await asyncio.to_thread(process.wait, 60)
        await deliveries.close()

    asyncio.run(asyncio.wait_for(body(), 120))


def test_reports_without_lines_are_sent_too_as_their_run_may_be_held(tmp_path: Path) -> None:
    container = RunContainer(tmp_path, "t.1", 0)
    container.run.prepare()
    spool = container.run.spool / f"rank{METRICS_SUFFIX}"
    spool.write_bytes(bytes(FILE_HEADER.size + 1))
    assert container.spools.reports_wait()
    assert not container.spools.lines_wait()

    async def body() -> None:
        deliveries = Deliveries(
            tmp_path, address="", log_wait=600.0, is_over=lambda _: True, until_over=_nothing
        )
        assert await deliveries.deliver_lines({"t.1": ""})
        (process,) = deliveries._senders
        await asyncio.to_thread(process.wait, 60)
        await deliveries.close()

    asyncio.run(asyncio.wait_for(body(), 120))
