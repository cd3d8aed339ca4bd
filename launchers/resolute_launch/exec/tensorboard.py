"""Serves TensorBoard as a task, for `resolute tensorboard start`.

The ``data`` of its config names the event files that it shows::

    tensorboard:
      sources: [{name: experiment 1, storage: {type: shared_fs, ...}, path: CLUSTER/tensorboard/experiment/1}]
      idle_timeout: 3600
      tensorboard_args: [--samples_per_plugin, scalars=500]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resolute import core
from resolute.api.experiments.v1.allocations_service_pb2 import RendezvousRequest
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.core.remote.assembly import open_session
from resolute.core.tensorboard.destinations import open_destination
from resolute.errors import ResoluteError
from resolute.info import ClusterInfo, get_cluster_info

_IDLE_SECONDS = 3600.0
_POLL_SECONDS = 1.0
_FETCH_SECONDS = 15.0
_ANNOUNCE_SECONDS = 30.0
_MISSING = "TensorBoard is not installed in the environment of the cluster: pip install tensorboard"


@dataclass(frozen=True, kw_only=True)
class Board:
    """The served event files, and the idle timeout."""

    sources: Sequence[Mapping[str, Any]]
    """The name, the storage and the path in it of each directory of event files."""
    idle_timeout: float = _IDLE_SECONDS
    """Seconds without any request after which it ends."""
    tensorboard_args: Sequence[str] = field(default=())
    """More arguments of TensorBoard."""


class Requests:
    """A WSGI application in front of another one, which records the time of the last request.

    Args:
        application: The other one.
        clock: Tells the time.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._application = application
        self._clock = clock
        self._last = clock.monotonic()

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        """Hands a request on."""
        self._last = self._clock.monotonic()
        return self._application(environ, start_response)

    @property
    def idle_seconds(self) -> float:
        """Seconds since the last request, or since the start."""
        return self._clock.monotonic() - self._last


def fetch(board: Board, scratch: Path) -> dict[str, Path]:
    """Returns the directory of each source, by its name; files of buckets are copied, and kept up to date.

    Args:
        board: Names the sources.
        scratch: Where copies go.

    Raises:
        ResoluteError: A store cannot be read now.
    """
    directories = {}
    for number, source in enumerate(board.sources):
        destination = open_destination(source["storage"], Path(source["path"]), container_path=None)
        directories[source["name"]] = destination.fetch(scratch / str(number))
    return directories


def main() -> int:
    """Serves until it is idle, or the run is asked to stop."""
    info = get_cluster_info()
    if info is None or "tensorboard" not in info.user_data:
        sys.stderr.write(
            "determined.exec.tensorboard: this is not a task of TensorBoard; start it by "
            "`resolute tensorboard start`\n"
        )
        return 1
    board = Board(**info.user_data["tensorboard"])
    try:
        from tensorboard import program
    except ImportError:
        sys.stderr.write(f"{_MISSING}\n")
        return 1
    with tempfile.TemporaryDirectory(prefix="events-") as scratch, core.init() as context:
        directories = fetch(board, Path(scratch))
        counted: list[Requests] = []

        def serve(application: Callable[..., Iterable[bytes]], flags: Any) -> Any:
            counted.append(Requests(application))
            return program.create_port_scanning_werkzeug_server(counted[0], flags)

        server = program.TensorBoard(server_class=serve)
        address = info.container_addrs[0]
        server.configure(argv=["", *_arguments(directories, address=address), *board.tensorboard_args])
        url = server.launch()
        _announce(info, address, int(url.rstrip("/").rpartition(":")[2].partition("/")[0]))
        print(f"TensorBoard is running at {url}", flush=True)
        fetched = SYSTEM_CLOCK.monotonic()
        while not context.preempt.should_preempt():
            if counted[0].idle_seconds > board.idle_timeout:
                print(f"no request for {board.idle_timeout:g} s", flush=True)
                break
            if SYSTEM_CLOCK.monotonic() - fetched > _FETCH_SECONDS:
                _fetch_again(board, Path(scratch))
                fetched = SYSTEM_CLOCK.monotonic()
            time.sleep(_POLL_SECONDS)
    return 0


def _arguments(directories: Mapping[str, Path], *, address: str) -> list[str]:
    # One directory goes by --logdir, which finds new trials in it by itself; several have names of their own.
    if len(directories) == 1:
        where = ["--logdir", str(*directories.values())]
    else:
        where = ["--logdir_spec", ",".join(f"{name}:{path}" for name, path in directories.items())]
    return [*where, "--host", address, "--port", "0"]


def _announce(info: ClusterInfo, address: str, port: int) -> None:
    """Tells the cluster where it listens."""
    assert info.connection is not None
    session = open_session(info, info.connection)
    request = RendezvousRequest(
        allocation_id=info.allocation_id, address=address, slot_count=len(info.slot_ids), ports=[port]
    )
    try:
        session.retry_during_outage(
            lambda: session.allocations.Rendezvous(request, timeout=_ANNOUNCE_SECONDS),
            purpose="the address of TensorBoard",
        )
    finally:
        session.close()


def _fetch_again(board: Board, scratch: Path) -> None:
    try:
        fetch(board, scratch)
    except ResoluteError as failure:
        sys.stderr.write(f"new events are fetched later: {failure}\n")


if __name__ == "__main__":
    sys.exit(main())
