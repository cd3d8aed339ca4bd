"""Jobs of several ranks in threads of this process, over the real collectives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from support.ports import free_port

from resolute.core import DistributedContext

DEADLINE = 30.0


def rank_outcomes(
    size: int, work: Callable[[DistributedContext], Any], *, local_size: int | None = None
) -> list[Any]:
    """What the work returned on each rank, or the exception that it raised."""
    port = free_port()
    outcomes: list[Any] = [None] * size
    per_machine = local_size or size

    def one(rank: int) -> None:
        try:
            with DistributedContext(
                rank=rank,
                size=size,
                local_rank=rank % per_machine,
                local_size=per_machine,
                cross_rank=rank // per_machine,
                cross_size=size // per_machine,
                chief_ip="localhost",
                pull_port=port,
                start_timeout=10.0,
            ) as context:
                outcomes[rank] = work(context)
        except Exception as error:  # noqa: BLE001 - handed to the test
            outcomes[rank] = error

    threads = [threading.Thread(target=one, args=(rank,), name=f"rank-{rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return outcomes


def rank_results(
    size: int, work: Callable[[DistributedContext], Any], *, local_size: int | None = None
) -> list[Any]:
    """What the work returned on each rank; raises what one of them raised."""
    outcomes = rank_outcomes(size, work, local_size=local_size)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return outcomes


def written(size: int) -> Callable[[], None]:
    """A call in which each rank waits until all have written.

    Ranks that are threads share the open files of their process: what one writes looks open to another.
    """
    barrier = threading.Barrier(size)

    def wait() -> None:
        barrier.wait(DEADLINE)

    return wait
