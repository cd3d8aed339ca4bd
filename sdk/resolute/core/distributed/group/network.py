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

from resolute.core.distributed.errors import CollectiveError
from resolute.core.distributed.group.collectives import ROOT
from resolute.core.distributed.group.hub import Hub
from resolute.core.distributed.group.hub_client import HubClient
from resolute.core.distributed.group.hub_group import HubGroup
from resolute.core.distributed.group.interface import ProcessGroup, SingleProcessGroup
from resolute.core.distributed.group.membership import Membership
from resolute.core.distributed.group.parameters import GroupParameters
from resolute.core.distributed.settings import CollectiveSettings
from resolute.core.distributed.topology import LOOPBACK, Topology
from resolute.core.distributed.transport.messages import Codec
from resolute.core.distributed.transport.sockets import ZmqContext, tcp_url

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _RankPlacement:
    """The placement of a rank, which it sends to all others once they are connected."""

    rank: int
    cross_rank: int
    local_rank: int
    local_size: int
    local_url: str | None


class Network:
    """Connects this process with the others of a job of several processes, until `close`.

    Args:
        topology: The ranks of this process.
        chief_host: Host of rank 0.
        pull_port: TCP port on which rank 0 serves the job.
        settings: Key, timeouts, and the run's name.
        force_tcp: Use TCP within the machine too, instead of a Unix socket.

    Raises:
        CollectiveTimeoutError: Some ranks did not connect; it names them.
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
            self.job: ProcessGroup = job
            self.machine: ProcessGroup = self._connect_machine(opened, context, job) or SingleProcessGroup()
            self._opened = opened.pop_all()
        _open.add(self)

    def close(self) -> None:
        """Leaves both groups and frees everything. In a forked child this does nothing."""
        if os.getpid() == self._pid:
            self._opened.close()

    def _connect_job(
        self, opened: contextlib.ExitStack, context: ZmqContext, host: str, port: int
    ) -> HubGroup:
        topology = self._topology
        parameters = self._parameters(Membership(range(topology.size)), ipv6=":" in host)
        hub, endpoint = None, tcp_url(host, port)
        if topology.rank == ROOT:
            if self._settings.key is None and not topology.on_one_machine:
                logger.warning(
                    "port %d is open to the network and its messages are not signed: "
                    "set RESOLUTE_COLLECTIVE_KEY to a secret, the same for all ranks",
                    port,
                )
            hub, endpoint = self._hub(opened, context, parameters), "inproc://job"
            # One machine needs no port that other machines can reach.
            hub.bind(tcp_url(LOOPBACK if topology.on_one_machine else "*", port))
            hub.bind(endpoint)
            hub.start("resolute-collectives-job")
        group = _open_group(
            opened, HubClient(context, endpoint, parameters, index=topology.rank, hub_alive=_alive(hub)), hub
        )
        group.member.join(self._remaining_seconds())
        return group

    def _connect_machine(
        self, opened: contextlib.ExitStack, context: ZmqContext, job: HubGroup
    ) -> HubGroup | None:
        topology = self._topology
        # Which ranks share the machine is known only after the handshake; the address is needed before.
        membership = Membership([-1] * topology.local_size)
        parameters = self._parameters(membership)
        hub = url = None
        if topology.local_size > 1 and topology.local_rank == ROOT:
            hub = self._hub(opened, context, parameters)
            url = hub.bind(_local_endpoint(opened, force_tcp=self._force_tcp))
            hub.bind("inproc://machine")
        placement = _RankPlacement(
            topology.rank, topology.cross_rank, topology.local_rank, topology.local_size, url
        )
        local_peers = _local_peers(job.allgather(placement), topology.cross_rank)
        if topology.local_size < 2:
            return None
        membership.assign([local_peer.rank for local_peer in local_peers])
        endpoint = str(local_peers[ROOT].local_url)
        if hub is not None:
            endpoint = "inproc://machine"
            hub.start("resolute-collectives-machine")
        member = HubClient(context, endpoint, parameters, index=topology.local_rank, hub_alive=_alive(hub))
        group = _open_group(opened, member, hub)
        group.member.join(self._remaining_seconds(), parent=job.member)
        return group

    def _parameters(self, membership: Membership, *, ipv6: bool = False) -> GroupParameters:
        settings = self._settings
        return GroupParameters(membership, Codec(settings.key), settings.job, settings.timeout, ipv6)

    def _hub(self, opened: contextlib.ExitStack, context: ZmqContext, parameters: GroupParameters) -> Hub:
        hub = Hub(context, parameters, start_timeout=self._remaining_seconds())
        opened.callback(hub.stop)
        return hub

    def _remaining_seconds(self) -> float:
        return max(0.0, self._deadline - time.monotonic())


_open: "weakref.WeakSet[Network]" = weakref.WeakSet()


def _close_all() -> None:
    for network in list(_open):
        network.close()


# Hooks run in reverse: the import above set the library's own, so its helper thread still works in ours.
atexit.register(_close_all)


def _open_group(opened: contextlib.ExitStack, member: HubClient, hub: Hub | None) -> HubGroup:
    group = HubGroup(member, hub)
    opened.callback(group.close)
    return group


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


def _local_peers(placements: Sequence[_RankPlacement], cross_rank: int) -> list[_RankPlacement]:
    """The ranks of one machine, in their local order.

    Every rank looks at every machine, so that all of them fail where one would.

    Raises:
        CollectiveError: The local ranks of some machine are not 0 to local_size - 1.
    """
    machines: dict[int, list[_RankPlacement]] = {}
    for placement in placements:
        machines.setdefault(placement.cross_rank, []).append(placement)
    for machine, members in sorted(machines.items()):
        members.sort(key=lambda placement: placement.local_rank)
        size = members[0].local_size
        if all(placement.local_size < 2 for placement in members):
            continue
        if len({placement.local_size for placement in members}) > 1 or [
            s.local_rank for s in members
        ] != list(range(size)):
            listed = "; ".join(f"rank {s.rank}: local_rank {s.local_rank} of {s.local_size}" for s in members)
            raise CollectiveError(
                f"the ranks of machine {machine} (cross_rank {machine}) do not count up from local_rank 0 "
                f"to local_size - 1: {listed}",
                ranks=[placement.rank for placement in members],
            )
    return machines[cross_rank]
