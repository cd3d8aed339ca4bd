"""The two groups that a rank belongs to: its whole job, and its machine."""

import atexit
import contextlib
import logging
import os
import shutil
import socket
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zmq
import zmq.utils.garbage

from resolute.core.distributed.collective import Alone, Collective
from resolute.core.distributed.errors import CollectiveError
from resolute.core.distributed.hub import Hub
from resolute.core.distributed.member import Member
from resolute.core.distributed.roster import Roster
from resolute.core.distributed.rounds import CENTRE
from resolute.core.distributed.settings import CollectiveSettings
from resolute.core.distributed.sockets import ZmqContext, tcp_url
from resolute.core.distributed.star import Star
from resolute.core.distributed.terms import Terms
from resolute.core.distributed.topology import LOOPBACK, Topology
from resolute.core.distributed.wire import Codec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Seat:
    """What a rank tells all others about its place, once they are connected."""

    rank: int
    cross_rank: int
    local_rank: int
    local_size: int
    local_url: str | None


class Network:
    """Connects this process with the others of its job, of which there are some, until `close`.

    Args:
        topology: The place of this process.
        chief_host: Where rank 0 is.
        pull_port: TCP port on which rank 0 serves the job.
        settings: Key, timeouts, and the run's name.
        force_tcp: Use TCP within the machine too, instead of a Unix socket.

    Raises:
        CollectiveTimeoutError: Some rank did not come; it names them.
        CollectiveError: The ranks cannot be connected; the message says why.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        chief_host: str,
        pull_port: int,
        settings: CollectiveSettings,
        force_tcp: bool,
    ) -> None:
        self._pid = os.getpid()
        self._topology = topology
        self._settings = settings
        self._force_tcp = force_tcp
        self._deadline = time.monotonic() + settings.start_timeout
        # Undone in reverse, here when the start fails, else by close().
        with contextlib.ExitStack() as opened:
            context: ZmqContext = zmq.Context(io_threads=1)
            opened.callback(context.term)
            job = self._connect_job(opened, context, chief_host, pull_port)
            self.job: Collective = job
            self.machine: Collective = self._connect_machine(opened, context, job) or Alone()
            self._opened = opened.pop_all()
        _open.add(self)

    def close(self) -> None:
        """Leaves both groups and frees everything. In a forked child this does nothing."""
        if os.getpid() == self._pid:
            self._opened.close()

    def _connect_job(self, opened: contextlib.ExitStack, context: ZmqContext, host: str, port: int) -> Star:
        topology = self._topology
        terms = self._terms(Roster(range(topology.size)), ipv6=":" in host)
        hub, endpoint = None, tcp_url(host, port)
        if topology.rank == CENTRE:
            if self._settings.key is None and not topology.on_one_machine:
                logger.warning(
                    "port %d is open to the network and its messages are not signed: "
                    "set RESOLUTE_COLLECTIVE_KEY to a secret, the same for all ranks",
                    port,
                )
            hub, endpoint = self._hub(opened, context, terms), "inproc://job"
            # One machine needs no port that other machines can reach.
            hub.bind(tcp_url(LOOPBACK if topology.on_one_machine else "*", port))
            hub.bind(endpoint)
            hub.start("resolute-collectives-job")
        star = _star(
            opened, Member(context, endpoint, terms, index=topology.rank, hub_alive=_alive(hub)), hub
        )
        star.member.join(self._left())
        return star

    def _connect_machine(self, opened: contextlib.ExitStack, context: ZmqContext, job: Star) -> Star | None:
        topology = self._topology
        # Who is on the machine is known only when all have told their seats; the address is needed before.
        roster = Roster([-1] * topology.local_size)
        terms = self._terms(roster)
        hub = url = None
        if topology.local_size > 1 and topology.local_rank == CENTRE:
            hub = self._hub(opened, context, terms)
            url = hub.bind(_local_endpoint(opened, force_tcp=self._force_tcp))
            hub.bind("inproc://machine")
        seat = _Seat(topology.rank, topology.cross_rank, topology.local_rank, topology.local_size, url)
        neighbours = _neighbours(job.allgather(seat), topology.cross_rank)
        if topology.local_size < 2:
            return None
        roster.assign([neighbour.rank for neighbour in neighbours])
        endpoint = str(neighbours[CENTRE].local_url)
        if hub is not None:
            endpoint = "inproc://machine"
            hub.start("resolute-collectives-machine")
        member = Member(context, endpoint, terms, index=topology.local_rank, hub_alive=_alive(hub))
        star = _star(opened, member, hub)
        star.member.join(self._left(), elder=job.member)
        return star

    def _terms(self, roster: Roster, *, ipv6: bool = False) -> Terms:
        settings = self._settings
        return Terms(roster, Codec(settings.key), settings.job, settings.timeout, ipv6)

    def _hub(self, opened: contextlib.ExitStack, context: ZmqContext, terms: Terms) -> Hub:
        hub = Hub(context, terms, start_timeout=self._left())
        opened.callback(hub.stop)
        return hub

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


_open: "weakref.WeakSet[Network]" = weakref.WeakSet()


def _close_all() -> None:
    for network in list(_open):
        network.close()


# Hooks run in reverse: the import above set the library's own, so its helper thread still works in ours.
atexit.register(_close_all)


def _star(opened: contextlib.ExitStack, member: Member, hub: Hub | None) -> Star:
    star = Star(member, hub)
    opened.callback(star.close)
    return star


def _alive(hub: Hub | None) -> Callable[[], bool]:
    return (lambda: True) if hub is None else (lambda: hub.alive)


def _local_endpoint(opened: contextlib.ExitStack, *, force_tcp: bool) -> str:
    """An address that only processes of this machine, and over a Unix socket only this user's, can reach."""
    if hasattr(socket, "AF_UNIX") and zmq.has("ipc") and not force_tcp:
        # A temporary directory is its owner's alone (mode 0700).
        directory = tempfile.mkdtemp(prefix="resolute-")
        opened.callback(shutil.rmtree, directory, ignore_errors=True)
        path = Path(directory) / "machine.sock"
        if len(os.fsencode(path)) < zmq.IPC_PATH_MAX_LEN:
            return f"ipc://{path}"
    return f"tcp://{LOOPBACK}:*"


def _neighbours(seats: Sequence[_Seat], cross_rank: int) -> list[_Seat]:
    """The ranks of one machine, in their local order.

    Every rank looks at every machine, so that all of them fail where one would.

    Raises:
        CollectiveError: The local ranks of some machine are not 0 to local_size - 1.
    """
    machines: dict[int, list[_Seat]] = {}
    for seat in seats:
        machines.setdefault(seat.cross_rank, []).append(seat)
    for machine, members in sorted(machines.items()):
        members.sort(key=lambda seat: seat.local_rank)
        size = members[0].local_size
        if all(seat.local_size < 2 for seat in members):
            continue
        if len({seat.local_size for seat in members}) > 1 or [s.local_rank for s in members] != list(
            range(size)
        ):
            told = "; ".join(f"rank {s.rank}: local_rank {s.local_rank} of {s.local_size}" for s in members)
            raise CollectiveError(
                f"the ranks of machine {machine} (cross_rank {machine}) do not count up from local_rank 0 "
                f"to local_size - 1: {told}",
                ranks=[seat.rank for seat in members],
            )
    return machines[cross_rank]
