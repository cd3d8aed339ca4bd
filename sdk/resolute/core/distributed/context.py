"""``DistributedContext``, by which the processes of one trial communicate."""

import dataclasses
import os
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from resolute.core.distributed import topology as launched
from resolute.core.distributed.group.interface import ProcessGroup, SingleProcessGroup
from resolute.core.distributed.settings import DEFAULT_PUB_PORT, DEFAULT_PULL_PORT, CollectiveSettings
from resolute.core.distributed.topology import HorovodRanks, Topology

if TYPE_CHECKING:
    from typing_extensions import Self

CHIEF_IP_VARIABLE = "DET_CHIEF_IP"


class DistributedContext:
    """The rank of this process in its job, and small collectives with the other processes.

    All processes of a job create one each, at about the same time. The constructor returns when all are
    connected. The collectives carry any value that can be pickled, and are meant for coordination: gradients
    belong to the training framework. Every process must make the same calls in the same order, from one
    thread. When a process dies, or closes its context while others wait for it, the others get a
    `CollectiveError` that names it.

    With ``RESOLUTE_COLLECTIVE_KEY`` set (the same for all), every message is signed and others are refused.

    Args:
        rank: Index of this process in the job. Give all of the six numbers, or none of them for a job of one
            process.
        size: Number of processes in the job.
        local_rank: Index of this process on its machine.
        local_size: Number of processes on its machine.
        cross_rank: Index of the machine in the job.
        cross_size: Number of machines in the job.
        chief_ip: Address of rank 0's machine. It is required with several machines; the default is 127.0.0.1.
        pub_port: Accepted for compatibility: one connection carries both directions.
        pull_port: TCP port on which rank 0 serves the others. ``RESOLUTE_COLLECTIVE_PORTS`` ("pub,pull")
            replaces the default.
        port_offset: Number added to the port, so that jobs on one host use different ports.
        force_tcp: Use TCP within a machine too, instead of a Unix socket.
        start_timeout: Seconds for all processes to connect; default ``RESOLUTE_COLLECTIVE_START_TIMEOUT``,
            else 600.
        timeout: Seconds that a collective may wait for its slowest process; rank 0's value counts. The
            default is ``RESOLUTE_COLLECTIVE_TIMEOUT``, else no limit, with a warning that names the missing
            processes.

    Raises:
        ValueError: Some of the six numbers are missing, or they contradict each other.
        AssertionError: There are several machines and no ``chief_ip``.
        CollectiveTimeoutError: Some processes did not connect; it names them.
        CollectiveError: The processes cannot be connected; the message says why.

    Examples:
        >>> from resolute import core
        >>> with core.DistributedContext() as distributed:
        ...     print(distributed.rank, distributed.size, distributed.allgather("here"))
        0 1 ['here']
    """

    def __init__(  # noqa: PLR0913 - the documented signature
        self,
        *,
        rank: int | None = None,
        size: int | None = None,
        local_rank: int | None = None,
        local_size: int | None = None,
        cross_rank: int | None = None,
        cross_size: int | None = None,
        chief_ip: str | None = None,
        pub_port: int = DEFAULT_PUB_PORT,
        pull_port: int = DEFAULT_PULL_PORT,
        port_offset: int = 0,
        force_tcp: bool = False,
        start_timeout: float | None = None,
        timeout: float | None = None,
    ) -> None:
        place = Topology.of(
            rank=rank,
            size=size,
            local_rank=local_rank,
            local_size=local_size,
            cross_rank=cross_rank,
            cross_size=cross_size,
        )
        self.rank = place.rank
        self.size = place.size
        self.local_rank = place.local_rank
        self.local_size = place.local_size
        self.cross_rank = place.cross_rank
        self.cross_size = place.cross_size
        chief_host = place.chief_host(chief_ip)
        settings = CollectiveSettings.from_environment(os.environ)
        port = settings.pull_port(pull_port, port_offset)
        settings = dataclasses.replace(
            settings,
            start_timeout=settings.start_timeout if start_timeout is None else start_timeout,
            timeout=settings.timeout if timeout is None else timeout,
        )
        self._job: ProcessGroup = SingleProcessGroup()
        self._machine: ProcessGroup = SingleProcessGroup()
        self._close: Callable[[], object] = self._job.close
        if place.size > 1:
            self._connect(place, chief_host, port, settings, force_tcp=force_tcp)

    def _connect(
        self, place: Topology, chief_host: str, port: int, settings: CollectiveSettings, *, force_tcp: bool
    ) -> None:
        # A job of one process needs none of this, and starts faster without.
        from resolute.core.distributed.group.network import Network

        network = Network(
            place, chief_host=chief_host, pull_port=port, settings=settings, force_tcp=force_tcp
        )
        self._job, self._machine = network.job, network.machine
        forgotten = weakref.finalize(self, network.close)
        # The network closes itself at exit, where the order of hooks matters.
        forgotten.atexit = False
        self._close = forgotten

    @classmethod
    def from_horovod(cls, hvd: HorovodRanks, chief_ip: str | None = None) -> "Self":
        """Asks an initialised Horovod module (such as ``horovod.torch``) for the ranks.

        Args:
            hvd: The module, after ``hvd.init()``.
            chief_ip: As for the class; default ``DET_CHIEF_IP``.
        """
        return cls._from_launcher(launched.from_horovod(hvd), chief_ip)

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> "Self":
        """Takes the ranks from the variables that the DeepSpeed launcher sets.

        Args:
            chief_ip: As for the class; default ``DET_CHIEF_IP``.

        Raises:
            LaunchVariablesError: The script was not launched by DeepSpeed (also a `KeyError`).
        """
        return cls._from_launcher(launched.from_deepspeed(os.environ), chief_ip)

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> "Self":
        """Takes the ranks from the variables that torchrun sets.

        Args:
            chief_ip: As for the class; default ``DET_CHIEF_IP``.

        Raises:
            LaunchVariablesError: The script was not launched by torchrun (also a `KeyError`).
        """
        return cls._from_launcher(launched.from_torch_distributed(os.environ), chief_ip)

    @classmethod
    def from_tf_config(cls) -> "tuple[Self, Any]":
        """Takes the ranks from ``TF_CONFIG``, and chooses the TensorFlow strategy that fits.

        Returns:
            The context and a ``tf.distribute.Strategy``: over the workers of ``TF_CONFIG``, else over the
            GPUs of this machine, else TensorFlow's default.

        Raises:
            ImportError: TensorFlow is not installed.
            ValueError: ``TF_CONFIG`` is malformed.
            RuntimeError: This process is no worker in it.
        """
        from resolute.core.distributed import tensorflow

        cluster = tensorflow.read(os.environ)
        strategy = tensorflow.choose_strategy(cluster)
        if cluster is None:
            return cls(), strategy
        return cls._from_launcher(
            cluster.topology, os.environ.get(CHIEF_IP_VARIABLE) or cluster.chief_host
        ), strategy

    @classmethod
    def _from_launcher(cls, place: Topology, chief_ip: str | None) -> "Self":
        return cls(
            **dataclasses.asdict(place),
            chief_ip=chief_ip or os.environ.get(CHIEF_IP_VARIABLE),
            port_offset=CollectiveSettings.from_environment(os.environ).port_offset,
        )

    def get_rank(self) -> int:
        """Index of this process in the job."""
        return self.rank

    def get_local_rank(self) -> int:
        """Index of this process on its machine."""
        return self.local_rank

    def get_size(self) -> int:
        """Number of processes in the job."""
        return self.size

    def get_num_agents(self) -> int:
        """Number of machines in the job."""
        return self.cross_size

    def gather(self, stuff: Any) -> list[Any] | None:
        """Brings every rank's value to the chief.

        Returns:
            On rank 0 the values in the order of the ranks. None on the others, who wait until it has them.

        Raises:
            CollectiveError: Some rank died, left, was too slow or called something else; it names that rank.
        """
        return self._job.gather(stuff)

    def gather_local(self, stuff: Any) -> list[Any] | None:
        """As `gather`, among the processes of this machine, to local rank 0."""
        return self._machine.gather(stuff)

    def allgather(self, stuff: Any) -> list[Any]:
        """Brings every rank's value to all ranks.

        Returns:
            The values in the order of the ranks; this rank's own entry is ``stuff`` itself.

        Raises:
            CollectiveError: As for `gather`.
        """
        return self._job.allgather(stuff)

    def allgather_local(self, stuff: Any) -> list[Any]:
        """As `allgather`, among the processes of this machine."""
        return self._machine.allgather(stuff)

    def broadcast(self, stuff: Any = None) -> Any:
        """Brings the chief's value to all ranks; what the others pass is ignored.

        Rank 0 does not wait until the others have called.

        Raises:
            CollectiveError: As for `gather`.
        """
        return self._job.broadcast(stuff)

    def broadcast_local(self, stuff: Any = None) -> Any:
        """As `broadcast`, among the processes of this machine, from local rank 0."""
        return self._machine.broadcast(stuff)

    def close(self) -> None:
        """Leaves the job and frees sockets and threads. Calling it again does nothing.

        The others get an error only if they need this rank afterwards; without rank 0 they can do nothing.
        """
        self._close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class DummyDistributedContext(DistributedContext):
    """A job of one process: every collective returns at once with this process's own value.

    Examples:
        >>> from resolute import core
        >>> core.DummyDistributedContext().gather("here")
        ['here']
    """

    def __init__(self) -> None:
        super().__init__()
