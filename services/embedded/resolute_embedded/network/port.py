"""The ports of a start: the previous ones, because running trials call the services there."""

from __future__ import annotations

import socket

import structlog

from resolute.errors import UnavailableError
from resolute_embedded.home.state_directory import StateDirectory

_log = structlog.get_logger("cluster")


def choose_port(state: StateDirectory, *, asked: int | None = None) -> int:
    """Chooses the port.

    Args:
        state: The home.
        asked: The port that somebody wants; None for the last one, or else a free one.

    Raises:
        UnavailableError: Trials still run and look for the services at the last port, which is taken.
    """
    # Trials that were launched before runs had a port of their own look for the services here.
    return _choose(state, asked=asked, last=state.last_port(), has_runs=not state.last_runs_port())


def choose_runs_port(state: StateDirectory, *, abandon: bool, taken: int) -> int:
    """Chooses the port at which the runs of this machine look for the services.

    Args:
        state: The home.
        abandon: Whether trials that still run may be left alone, because somebody asked for a new port.
        taken: Port that was chosen for people, and is not bound yet.

    Raises:
        UnavailableError: Trials still run and look for the services at the last port, which is taken.
    """
    last = state.last_runs_port()
    while (port := _choose(state, asked=None, last=last, has_runs=not abandon)) == taken:
        last = 0
    return port


def _choose(state: StateDirectory, *, asked: int | None, last: int, has_runs: bool) -> int:
    if not asked and last and _is_free(last):
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
    return asked or _free_port()


def choose_remote_port(state: StateDirectory, *, host: str, asked: int | None = None) -> int:
    """Chooses the port for other machines: the wanted one, the last one, or else a free one.

    Args:
        state: The home.
        host: Address that is bound.
        asked: The port that somebody wants.
    """
    last = state.last_remote_port()
    return asked or (last and _bound(last, host)) or _bound(0, host) or 0


def _is_free(port: int) -> bool:
    return _bound(port) is not None


def _free_port() -> int:
    port = _bound(0)
    if port is None:
        raise UnavailableError("no port of 127.0.0.1 is free; end programs that listen")
    return port


def _bound(port: int, host: str = "127.0.0.1") -> int | None:
    """The number of a port that could be bound just now; None if it could not."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return None
        return int(probe.getsockname()[1])
