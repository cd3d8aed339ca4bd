"""Lets one process serve the PostgreSQL database of several homes. The others are refused, or stand by."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import structlog

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.errors import FailedPreconditionError, UnavailableError
from resolute_embedded.home.identity import HomeIdentity
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.kit.run_directories.container import RunContainer, containers_in
from resolute_engines.protocol import ContainerState
from resolute_serving.database.leadership import LOOK_SECONDS, Leadership, Look, Term, Vacancy

_FENCED = 3
_log = structlog.get_logger("cluster")

OnLook = Callable[[Look], None]
"""Called with what a process saw that waits for its turn."""


@contextmanager
def served_alone(state: StateDirectory) -> Iterator[Term | None]:
    """Keeps everybody else off a home's database while the block runs; SQLite files have the home's lock.

    Returns:
        The term of this process; None with SQLite files.

    Raises:
        FailedPreconditionError: Another process serves it.
        UnavailableError: The server does not answer.
    """
    if not state.databases.are_moved:
        yield None
        return
    leadership = leadership_of(state)
    try:
        term = take_turn(leadership)
        assert term is not None
        with begun(term):
            yield term
    finally:
        leadership.close()


@contextmanager
def begun(term: Term) -> Iterator[None]:
    """Holds a term while the block runs. This process ends if another one takes over."""
    term.begin(_end_fenced)
    try:
        yield
    finally:
        term.end()


def leadership_of(state: StateDirectory) -> Leadership:
    """The row of the database of a home."""
    name = {**asdict(HomeIdentity.of(state.home.path)), "host": socket.gethostname()}
    return Leadership(
        state.databases.url("experiments"), holder=json.dumps(name, sort_keys=True), clock=SYSTEM_CLOCK
    )


def take_turn(
    leadership: Leadership, *, stopped: threading.Event | None = None, on_look: OnLook = lambda _: None
) -> Term | None:
    """Waits for the turn of this process, if it stands by. Otherwise takes it, or is refused within seconds.

    Args:
        leadership: The row; the lock of this home is held.
        stopped: Ends the waiting of a process that stands by; None for one that does not.
        on_look: Called with what others do.

    Returns:
        None if the waiting was ended.

    Raises:
        FailedPreconditionError: Another process serves, and this one does not stand by.
        UnavailableError: The server does not answer, and this one does not stand by.
    """
    waiting = stopped or threading.Event()
    vacancy, first, prepared = Vacancy(leadership.holder, SYSTEM_CLOCK), None, False
    while not waiting.is_set():
        began = SYSTEM_CLOCK.monotonic()
        try:
            if not prepared:
                leadership.prepare()
                prepared = True
            look = leadership.look()
            on_look(look)
            if vacancy.is_vacant(look) and (term := leadership.take(look)) is not None:
                return term
        except UnavailableError as error:
            vacancy.forget()
            if stopped is None:
                raise UnavailableError(f"PostgreSQL, which has the databases of the home: {error}") from error
        else:
            first = first or look
            if stopped is None and look != first:
                raise FailedPreconditionError(
                    f"another process serves the database: {shown(look.holder)}. Two would start runs twice: "
                    "stop the other one, or let this one stand by with `resolute up --standby`"
                )
        # On a busy machine a look takes long: ten of them with pauses between would take ten seconds.
        waiting.wait(max(began + LOOK_SECONDS - SYSTEM_CLOCK.monotonic(), 0.0))
    return None


def shown(holder: str) -> str:
    """Names a home for people."""
    name = json.loads(holder or "{}")
    return f"{name['path']} on {name['host']}" if name else "no home"


def _end_fenced() -> None:
    """Ends this process at once: another one serves the cluster, and what this one writes is refused.

    Trials go on, as after a crash; those of this machine are ended by the next process that stands by here.
    """
    _log.critical("another process has taken over the cluster; this one ends")
    os._exit(_FENCED)


class FormerRuns:
    """Ends the runs of this home that the database no longer counts, because another home was served since.

    Their trials continue there. The remaining data of these runs is sent when this home is served again.

    Args:
        state: The home; its lock is held.
        holder: Name of the home.
    """

    def __init__(self, state: StateDirectory, holder: str) -> None:
        self._state = state
        self._holder = holder
        self._ended = ""

    def look(self, look: Look) -> None:
        """Ends them once they are in another home."""
        if look.runs_of in ("", self._holder, self._ended):
            return
        folders = list(self._state.runs.iterdir()) if self._state.runs.is_dir() else []
        containers = [one for folder in folders for one in containers_in(self._state.runs, folder.name)]
        left = [container for container in containers if not self._is_ended(container)]
        if not left:
            self._ended = look.runs_of

    def _is_ended(self, container: RunContainer) -> bool:
        if container.locked:
            _log.warning(
                "a run is ended, as its trial continues in another home", run=container.allocation_id
            )
            container.kill()
        return container.inspect().state is not ContainerState.RUNNING
