"""Followers hear of what other replicas write, also after a look that failed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.waiting import wait_until_async

from resolute_searcher.runtime.change_poller import ChangePoller
from resolute_searcher.runtime.storage import Storage
from resolute_serving.database.engine import Database
from resolute_serving.notifier import Notifier


class FailingOnce(ChangePoller):
    """Its first look fails in a way that nobody expects."""

    looks = 0

    async def poll(self) -> None:
        self.looks += 1
        if self.looks == 1:
            raise RuntimeError("a defect")
        await super().poll()


def test_the_next_look_comes_after_one_that_failed_by_a_defect(tmp_path: Path) -> None:
    async def scenario() -> None:
        storage = Storage(Database(f"sqlite:///{tmp_path / 'searcher.sqlite'}", name="searcher"))
        poller = FailingOnce(storage, Notifier(), pause=0.001)
        poller.polls.start()
        await wait_until_async(lambda: poller.looks > 2, seconds=60, what="the looks after the failure")
        await poller.polls.stop()
        await storage.close()

    asyncio.run(scenario())
