"""How long an allocation waits for an image that cannot be pulled."""

from __future__ import annotations

import asyncio

import pytest
from support.clocks import ManualClock

from resolute.errors import FailedPreconditionError
from resolute_engines.container.images.names import UnpulledImageError, unpulled
from resolute_engines.container.images.pulls import Pulls
from resolute_engines.protocol import ContainerReport, ContainerState


async def attempts(failure: Exception) -> int:
    """Launches with a failure, 100 seconds after the other, until that is the end of the allocation."""
    clock, made = ManualClock(), 0
    told: asyncio.Queue[ContainerReport] = asyncio.Queue()

    async def launch() -> None:
        nonlocal made
        made += 1
        clock.advance(100)
        raise failure

    async def kill(_: str) -> None:
        pass

    pulls = Pulls(tell=told.put_nowait, kill=kill, timeout=300, clock=clock)
    pulls.begin("t.1", containers=1, reason="the image is being pulled", launch=launch)
    try:
        while (report := await told.get()).state is not ContainerState.ENDED:
            pass
        assert str(failure) in report.reason
    finally:
        await pulls.close()
    return made


@pytest.mark.parametrize(
    ("reason", "status", "expected"),
    [
        ("dial tcp 127.0.0.1:443: connect: connection refused", 500, 4),
        ("dial tcp: lookup registry.example: no such host", 500, 4),
        ("toomanyrequests: You have reached your pull rate limit", 500, 4),
        ("received unexpected HTTP status: 503 Service Unavailable", 0, 4),
        ("manifest for python:9 not found: manifest unknown", 404, 1),
        ("Head ...: denied: requested access to the resource is denied", 500, 1),
        ("unauthorized: authentication required", 0, 1),
    ],
)
def test_only_what_may_pass_is_waited_for(reason: str, status: int, expected: int) -> None:
    failure = unpulled("python:9", reason, status=status)
    assert isinstance(failure, UnpulledImageError) == (expected > 1)
    assert asyncio.run(asyncio.wait_for(attempts(failure), 60)) == expected


def test_what_is_not_of_the_registry_ends_it_at_once() -> None:
    failure = FailedPreconditionError("credentials for registries cannot be read")
    assert asyncio.run(asyncio.wait_for(attempts(failure), 60)) == 1
