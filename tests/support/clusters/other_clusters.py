"""Whole clusters without machines, in a thread of the test: their services, on a port of each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from support.services.in_process import Running, serving

from resolute.client.connection.endpoint import find_endpoint
from resolute.client.connection.session import Session
from resolute.client.services import Services
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role

_DEADLINE = 120.0


@contextmanager
def other_clusters(*homes: Path) -> Iterator[list[Running]]:
    """Serves everything until the block ends, once for each directory; its name tells the clusters apart."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="other-clusters", daemon=True)
    thread.start()
    stack = AsyncExitStack()

    async def start() -> list[Running]:
        running = []
        for home in homes:
            key = load_or_create_key(home / "data/experiments/signing-key.pem")
            one = serving(BLUEPRINTS, home, key=key, cluster=home.name)
            running.append(await stack.enter_async_context(one))
        return running

    async def stop() -> None:
        await stack.aclose()
        # Calls that the stop cancelled may still wait for a read of the database.
        if calls := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(calls, timeout=_DEADLINE)

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(_DEADLINE)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(2 * _DEADLINE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_DEADLINE)
        loop.close()


@contextmanager
def services_of(running: Running, *, role: Role = Role.ADMIN) -> Iterator[Services]:
    """The services of a cluster, for someone of a role."""
    token = running.user_token(role=role)
    endpoint = replace(find_endpoint(running.address, environment={}), token=lambda: token)
    with Session(endpoint) as session:
        yield Services(session)
