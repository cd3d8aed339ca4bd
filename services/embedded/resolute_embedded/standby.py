"""`resolute up --standby`: serves once no other process does. Until then its HTTP port reports standby."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

from resolute.errors import FailedPreconditionError
from resolute_embedded.cluster import Options, Ready, serve
from resolute_embedded.home.state_directory import StateDirectory
from resolute_embedded.home.turns import FormerRuns, begun, leadership_of, shown, take_turn
from resolute_embedded.network.remote_access import RemoteAccess
from resolute_gateway.requirements import missing_for_http
from resolute_serving.database.leadership import Leadership, Look, Term

Waits = Callable[[str], None]
"""Called with who serves, when a process begins to stand by."""


async def stand_by(state: StateDirectory, options: Options, *, waits: Waits, ready: Ready) -> None:
    """Waits until the server of a home's database is gone, then serves it, until a signal ends it.

    Args:
        state: The home; its lock must be held.
        options: How it is served.
        waits: Called with who serves, when this process begins to stand by.
        ready: Called once everything is up.

    Raises:
        FailedPreconditionError: The databases are files of the home.
    """
    if not state.databases.are_moved:
        raise FailedPreconditionError(
            f"the databases of {state.home.path} are files, which this machine alone can use; "
            "`resolute db move` moves them into PostgreSQL, where another machine finds them"
        )
    # It may name a process that was killed.
    state.home.endpoint_file.unlink(missing_ok=True)
    with ExitStack() as held:
        leadership = leadership_of(state)
        held.callback(leadership.close)
        async with _refusing(state, options):
            term = await _turn(state, leadership=leadership, waits=waits)
            if term is not None:
                held.enter_context(begun(term))
        if term is not None:
            await serve(state, options, ready=ready, term=term)


@asynccontextmanager
async def _refusing(state: StateDirectory, options: Options) -> AsyncIterator[None]:
    """Refuses HTTP meanwhile, where it will be served. gRPC has no open port."""
    if options.no_http or missing_for_http():
        yield
        return
    from resolute_embedded.network.standby_http import standby_http

    with ExitStack() as held:
        remote = RemoteAccess.prepare(state, options.remote, held=held)
        http = standby_http(state, remote=remote, port=options.http_port)
        http.start()
        try:
            yield
        finally:
            await http.stop()


async def _turn(state: StateDirectory, *, leadership: Leadership, waits: Waits) -> Term | None:
    """Waits for the turn; None if a signal ended the waiting."""
    stopped, loop = threading.Event(), asyncio.get_running_loop()
    former, announced = FormerRuns(state, leadership.holder), False

    def look(look: Look) -> None:
        nonlocal announced
        if not announced and look.holder not in ("", leadership.holder):
            announced = True
            waits(shown(look.holder))
        former.look(look)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        term = await asyncio.to_thread(take_turn, leadership, stopped=stopped, on_look=look)
        if term is not None and stopped.is_set():
            await asyncio.to_thread(term.end)
            return None
        return term
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
