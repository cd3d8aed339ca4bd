"""A stream that writes without a pause ends when it is cancelled, and when its client does not read."""

from __future__ import annotations

import asyncio

import pytest

from resolute.errors import UnavailableError
from resolute_serving.server import calls

ROUNDS = 8
"""More turns of the loop than one write takes."""


class Client:
    """Reads all at once, or nothing."""

    def __init__(self, *, reads: bool) -> None:
        self._reads = reads

    async def write(self, response: bytes) -> None:
        await (asyncio.sleep(0) if self._reads else asyncio.Event().wait())


async def writing(client: Client, most: int = 1000) -> None:
    for _ in range(most):
        await calls._write(client, b"")


@pytest.mark.parametrize("rounds", range(ROUNDS))
def test_a_cancellation_at_whatever_moment_ends_it(rounds: int) -> None:
    async def scenario() -> None:
        stream = asyncio.create_task(writing(Client(reads=True)))
        for _ in range(rounds):
            await asyncio.sleep(0)
        stream.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stream

    asyncio.run(scenario())


def test_a_client_that_reads_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "UNREAD_SECONDS", 0.01)
    with pytest.raises(UnavailableError, match="the client read nothing"):
        asyncio.run(writing(Client(reads=False)))
