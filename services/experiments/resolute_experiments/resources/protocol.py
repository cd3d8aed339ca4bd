"""The seam between the lifecycle of trials and whatever runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from resolute.contracts.run.exit_record import ExitRecord


class SlotKind(Enum):
    """What a slot is."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Slot:
    """One GPU, or one share of the processor where there is no GPU."""

    id: int
    """Number on its machine, from 0."""
    kind: SlotKind
    """What it is."""
    device: str = ""
    """Of a GPU, what ``CUDA_VISIBLE_DEVICES`` lists for it: its UUID where that is known."""
    node: int = 0
    """The machine that has it, from 0; slots of different ones never share a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSpec:
    """What one allocation needs to start. Everything else its supervisors fetch themselves."""

    allocation_id: str
    """Names the allocation everywhere."""
    placements: tuple[tuple[int, ...], ...]
    """Slots of each container, by rank; an auxiliary task has one container without slots."""
    address: str
    """``host:port`` where the supervisors reach the services."""
    token: str
    """The trial's first token."""


class ContainerState(Enum):
    """What a resource manager knows of a container."""

    UNKNOWN = "UNKNOWN"
    """It was never launched here."""
    ALIVE = "ALIVE"
    """Its supervisor lives."""
    EXITED = "EXITED"
    """Its supervisor wrote how it ended."""
    LOST = "LOST"
    """Its supervisor died without saying how it ended; what it left running was ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerReport:
    """The state of one container of an allocation."""

    allocation_id: str
    """The allocation."""
    container_rank: int
    """The container."""
    state: ContainerState
    """What is known of it."""
    exit: ExitRecord | None = None
    """How it ended, when it is EXITED."""


class ResourceManager(Protocol):
    """Has slots and runs supervisors on them.

    Every method can be repeated: a launch of what runs already, a stop of what ended, change nothing.
    """

    def capacity(self) -> Sequence[Slot]:
        """Every slot, by id."""

    async def launch(self, spec: AllocationSpec) -> None:
        """Starts the supervisors of an allocation; those that live, or ended already, are left alone.

        Raises:
            ResoluteError: They cannot be started; the message says why.
        """

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and ends what a lost supervisor left running.

        Living ones are watched from now on, also when an earlier life of this process launched them. A
        container counts as living until the last of its processes has ended.
        """

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors included."""

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends the lines that allocations left whose containers have ended, for a bounded time.

        What does not arrive in time is sent after it. The log names lines that are late.

        Args:
            tokens: A fresh token of each run, by allocation.

        Returns:
            Whether all lines have arrived.
        """

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation that was settled.

        What its run left on disk is removed in the background, once its supervisors have ended and its
        reports and lines have all arrived; what still waits is sent.

        Args:
            allocation_id: The allocation.
            token: A fresh token of the run, for when its own may have expired in a long outage.
        """

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of which something is left here and which was not released."""

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which reports wait here that have not arrived."""

    async def backlog_seconds(self) -> float:
        """Returns for how long reports or lines of some run have waited here without any of them arriving."""

    def watch(self) -> AsyncIterator[ContainerReport]:
        """Reports each container whose supervisor ended, until ``close``. One consumer."""

    async def close(self) -> None:
        """Ends the watching. Supervisors continue."""
