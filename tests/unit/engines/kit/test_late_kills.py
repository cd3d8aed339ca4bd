"""What outlasts its grace is killed: once, whatever goes wrong, and not after it has ended."""

from __future__ import annotations

import asyncio
from collections import Counter

from support.waiting import wait_until_async

from resolute_engines.kit.late_kills import LateKills


class Kills:
    """Kills that fail at first, by a defect of their own."""

    def __init__(self, *, defects: int = 0) -> None:
        self.asked: Counter[str] = Counter()
        self._defects = defects

    async def kill(self, allocation_id: str) -> None:
        self.asked[allocation_id] += 1
        if self.asked[allocation_id] <= self._defects:
            raise RuntimeError("a defect")


def test_a_defect_does_not_end_the_ending_of_what_outlasts_its_grace() -> None:
    async def body() -> None:
        kills = Kills(defects=2)
        late = LateKills("an-engine", kills.kill)
        late.plan("t.1", grace=0.0)
        await wait_until_async(lambda: kills.asked["t.1"] == 3)
        await late.close()
        assert kills.asked == {"t.1": 3}

    asyncio.run(body())


def test_the_first_grace_counts_and_what_has_ended_is_not_killed() -> None:
    async def body() -> None:
        kills = Kills()
        late = LateKills("an-engine", kills.kill)
        late.plan("ended", grace=0.0)
        late.plan("patient", grace=3600.0)
        late.plan("patient", grace=0.0)
        late.drop("ended")
        late.plan("hasty", grace=0.0)
        late.plan("hasty", grace=3600.0)
        await wait_until_async(lambda: kills.asked["hasty"])
        late.drop("nobody")
        await late.close()
        assert kills.asked == {"hasty": 1}
        assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("an-engine")]

    asyncio.run(body())
