"""The ports of a start: the previous ones, because running trials call the services there.

A port that is chosen stays bound by a socket that does not listen. Linux gives such a port to no program that
asks for a free one, and lets the server bind it as well, because both sockets reuse addresses.
"""

from __future__ import annotations

import socket
from contextlib import ExitStack

import structlog

from resolute.errors import UnavailableError
from resolute_embedded.home.state_directory import StateDirectory

_log = structlog.get_logger("cluster")


def choose_port(state: StateDirectory, held: ExitStack, *, asked: int | None = None) -> int:
    """Chooses the port.

    Args:
        state: The home.
        held: Keeps the port from other programs until it is closed; to be closed once the server listens.
        asked: The port that somebody wants; None for the last one, or else a free one.

    Raises:
        UnavailableError: Trials still run and look for the services at the last port, which is taken.
    """
    # Trials that were launched before runs had a port of their own look for the services here.
    return _choose(
        state, held, asked=asked, last=state.ports.people.last(), has_runs=not state.ports.runs.last()
    )


def choose_runs_port(state: StateDirectory, held: ExitStack, *, abandon: bool, taken: int) -> int:
    """Chooses the port at which the runs of this machine look for the services.

    Args:
        state: The home.
        held: As for :func:`choose_port`.
        abandon: Whether trials that still run may be left alone, because somebody asked for a new port.
        taken: Port that was chosen for people.

    Raises:
        UnavailableError: Trials still run and look for the services at the last port, which is taken.
    """
    last = state.ports.runs.last()
    while (port := _choose(state, held, asked=None, last=last, has_runs=not abandon)) == taken:
        last = 0
    return port


def _choose(state: StateDirectory, held: ExitStack, *, asked: int | None, last: int, has_runs: bool) -> int:
    if not asked and last and _hold(held, last):
        return last
    waiting = state.live_runs() if last and asked != last and has_runs else 0
    if waiting and not asked:
        raise UnavailableError(
            f"port {last} is taken by another program, and {waiting} containers of trials that still run "
            f"look for the cluster there; end that program (`ss -ltnp sport = :{last}` names it), or start "
            "with `resolute up --port N`, which leaves these trials alone until their outage timeout"
        )
    if waiting:
        _log.warning("trials still run and look for the cluster at its last port", port=last, runs=waiting)
    if port := _hold(held, asked or 0) or asked:
        return port  # one that somebody asked for and another program has is refused where it is served
    raise UnavailableError("no port of 127.0.0.1 is free; end programs that listen")


def choose_remote_port(state: StateDirectory, held: ExitStack, *, host: str, asked: int | None = None) -> int:
    """Chooses the port for other machines: the wanted one, the last one, or else a free one.

    Args:
        state: The home.
        held: As for :func:`choose_port`.
        host: Address that is bound.
        asked: The port that somebody wants.
    """
    wanted = asked or state.ports.remote.last()
    return _hold(held, wanted, host) or asked or _hold(held, 0, host)


def _hold(held: ExitStack, port: int, host: str = "127.0.0.1") -> int:
    """Binds a port, zero for a free one, without listening. Its number is zero if another program has it."""
    holder = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        holder.bind((host, port))
    except OSError:
        holder.close()
        return 0
    held.enter_context(holder)
    return int(holder.getsockname()[1])
