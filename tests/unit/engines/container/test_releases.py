"""For how long an engine of containers tries to send what a released run left."""

from __future__ import annotations

import asyncio

import pytest
from support.clocks import ManualClock
from support.waiting import wait_until_async

from resolute.errors import NotFoundError, UnavailableError
from resolute_engines.container.client import DockerApi
from resolute_engines.container.containers import Containers, ListedContainer
from resolute_engines.container.releases import ContainerReleases

OUTAGE_TIMEOUT = 280.0
STEP = 100.0
GONE = NotFoundError("No such image")
AWAY = UnavailableError("the engine does not answer")


class Left(Containers):
    """One container that has ended."""

    def __init__(self) -> None:
        super().__init__(DockerApi("unix:///nobody"), cluster_id="c")
        self.removed = False

    async def of(self, allocation_id: str) -> list[ListedContainer]:
        return [ListedContainer(name="c-t.1-0", rank=0, status="exited", allocation_id=allocation_id)]

    async def remove(self, allocation_id: str) -> None:
        self.removed = True


@pytest.mark.parametrize(
    ("answers", "attempts"),
    [
        pytest.param([True], 1, id="sent"),
        pytest.param([False, True], 2, id="sent later"),
        pytest.param([False] * 9, 4, id="never sent"),
        pytest.param([GONE] * 9, 4, id="without its image"),
        # What the engine did not answer was not tried.
        pytest.param([AWAY] * 4 + [True], 5, id="after an outage"),
    ],
)
def test_what_cannot_be_sent_is_removed_in_the_end(answers: list[bool | Exception], attempts: int) -> None:
    clock, left, made = ManualClock(), Left(), 0

    async def send(container: ListedContainer, token: str, *, note_late_lines: bool) -> bool:
        nonlocal made
        assert (container.name, token, note_late_lines) == ("c-t.1-0", "token", False)
        answer = answers[made]
        made += 1
        clock.advance(STEP)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def body() -> None:
        releases = ContainerReleases(
            left._api, left, send=send, outage_timeout=OUTAGE_TIMEOUT, log_wait=0, clock=clock
        )
        releases.release("t.1", token="token")
        assert await releases.unreported() == ["t.1"]
        await wait_until_async(lambda: "t.1" not in releases)
        assert (left.removed, made, await releases.seconds()) == (True, attempts, 0.0)
        await releases.close()

    asyncio.run(asyncio.wait_for(body(), 60))
