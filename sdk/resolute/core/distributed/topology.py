"""The ranks of this process in its job, read from the variables of launchers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from resolute.core.distributed.errors import LaunchVariablesError

LOOPBACK = "127.0.0.1"


class HorovodRanks(Protocol):
    """The functions of a Horovod module (``horovod.torch``, ``horovod.tensorflow``, …) that give ranks."""

    def rank(self) -> int:
        """Index of this process in the job."""

    def size(self) -> int:
        """Number of processes in the job."""

    def local_rank(self) -> int:
        """Index of this process on its machine."""

    def local_size(self) -> int:
        """Number of processes on its machine."""

    def cross_rank(self) -> int:
        """Index of the machine in the job."""

    def cross_size(self) -> int:
        """Number of machines in the job."""


@dataclass(frozen=True)
class Topology:
    """The ranks and sizes of one process in its job.

    Attributes:
        rank: Index of the process in the job.
        size: Number of processes in the job.
        local_rank: Index of the process on its machine.
        local_size: Number of processes on its machine.
        cross_rank: Index of the machine in the job.
        cross_size: Number of machines in the job.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    cross_rank: int = 0
    cross_size: int = 1

    def __post_init__(self) -> None:
        for index, count in (
            ("rank", "size"),
            ("local_rank", "local_size"),
            ("cross_rank", "cross_size"),
        ):
            if not 0 <= getattr(self, index) < getattr(self, count):
                raise ValueError(
                    f"{index} must be at least 0 and less than {count}, "
                    f"but {index} is {getattr(self, index)} and {count} is {getattr(self, count)}"
                )
        if self.local_size > self.size:
            raise ValueError(f"local_size ({self.local_size}) is larger than size ({self.size})")

    @classmethod
    def of(cls, **numbers: int | None) -> "Topology":
        """Builds it from the six numbers, or from none of them (a job of one process).

        Raises:
            ValueError: Only some are given, or they contradict each other.
        """
        given = {name: number for name, number in numbers.items() if number is not None}
        if len(given) not in {0, len(numbers)}:
            missing = ", ".join(sorted(numbers.keys() - given.keys()))
            raise ValueError(
                "rank, size, local_rank, local_size, cross_rank, and cross_size must all be "
                f"provided if any are provided; missing: {missing}"
            )
        return cls(**given)

    @property
    def on_one_machine(self) -> bool:
        """Whether the job has no other machine."""
        return self.local_size == self.size

    def chief_host(self, chief_ip: str | None) -> str:
        """Where every rank of the job finds rank 0.

        Raises:
            AssertionError: The job spans machines, and the address of rank 0 is not set.
        """
        if self.on_one_machine:
            return LOOPBACK
        if not chief_ip:
            raise AssertionError(
                f"chief_ip is required when local_size != size ({self.local_size} != {self.size}): "
                "pass chief_ip or set DET_CHIEF_IP to an address of rank 0's machine"
            )
        return chief_ip


def from_horovod(hvd: HorovodRanks) -> Topology:
    """Asks an initialised Horovod module."""
    return Topology(
        rank=hvd.rank(),
        size=hvd.size(),
        local_rank=hvd.local_rank(),
        local_size=hvd.local_size(),
        cross_rank=hvd.cross_rank(),
        cross_size=hvd.cross_size(),
    )


def from_deepspeed(environ: Mapping[str, str]) -> Topology:
    """Reads the variables that the DeepSpeed launcher sets for its workers."""
    return _from_variables(
        environ,
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE"),
        remedy="start the script through the deepspeed launcher",
    )


def from_torch_distributed(environ: Mapping[str, str]) -> Topology:
    """Reads the variables that torchrun sets for its workers."""
    return _from_variables(
        environ,
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
        remedy="start the script through torchrun or the torch_distributed launch layer",
    )


def from_tf_config(tf_config: Mapping[str, Any]) -> Topology:
    """Reads a parsed ``TF_CONFIG``: TensorFlow runs one process a machine.

    Raises:
        ValueError: It is not a cluster of workers with a task in it.
        RuntimeError: The task is no worker.
    """
    try:
        workers = list(tf_config["cluster"]["worker"])
        index = int(tf_config["task"]["index"])
        kind = tf_config["task"].get("type", "worker")
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"TF_CONFIG needs cluster.worker and task.index, not {dict(tf_config)!r}") from error
    if kind != "worker":
        raise RuntimeError(f"TF_CONFIG has a task of type {kind!r}; only workers train together")
    return Topology(rank=index, size=len(workers), cross_rank=index, cross_size=len(workers))


def _from_variables(environ: Mapping[str, str], names: tuple[str, ...], *, remedy: str) -> Topology:
    missing = [name for name in names if name not in environ]
    if missing:
        raise LaunchVariablesError(f"{', '.join(missing)} not set: {remedy}")
    try:
        numbers = [int(environ[name]) for name in names]
    except ValueError as error:
        raise ValueError(f"{', '.join(names)} must be whole numbers: {error}") from None
    return Topology(*numbers)
