"""The protocol between the lifecycle of trials and the engines that run them, and its values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

from resolute.contracts.priorities import DEFAULT_PRIORITY
from resolute.contracts.run.exit_record import ExitRecord
from resolute_engines.configs.requirements import ConfigRule
from resolute_engines.configs.unsupported_fields import UnsupportedField
from resolute_engines.configs.warning_rules import WarningRule


class SlotKind(Enum):
    """The kind of a slot."""

    CPU = "cpu"
    GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Slot:
    """One GPU, or one share of the processor where there is no GPU."""

    id: int
    """Number in its pool, from 0. It means the same slot for as long as any run holds it."""
    kind: SlotKind
    """What it is."""
    device: str = ""
    """Of a GPU, what ``CUDA_VISIBLE_DEVICES`` lists for it: its UUID where that is known."""
    node: int = 0
    """The machine that has it, from 0; slots of different ones never share a container."""


MOST_ALLOCATIONS = 64
"""How many allocations an engine that places is given at a time, unless the settings of its pool say it."""

MOST_WITHOUT_SLOTS = 100
"""How many allocations without slots a pool of our placement runs at a time, unless its settings say it."""


class Placement(Enum):
    """The component that chooses the machines of an allocation and the time of its start."""

    OURS = "ours"
    """The scheduler gives it slots that are free, and the engine starts it at once."""
    ENGINE = "engine"
    """The engine has a queue of its own: it is given allocations that may wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The current state of a resource pool: machines that configs select by ``resources.resource_pool``."""

    name: str
    """Unique in the cluster."""
    placement: Placement = Placement.OURS
    """Who chooses the machines."""
    slots: tuple[Slot, ...] = ()
    """Every slot, by id. Where the engine places, what is known of its capacity; nothing is taken from it."""
    slots_per_node: int = 1
    """Where the engine places: slots of each container of an allocation that wants more than one node has."""
    most_slots: int | None = None
    """Where the engine places: most slots of an allocation; None where the engine alone knows."""
    most_allocations: int = MOST_ALLOCATIONS
    """Where the engine places: how many allocations it is given at a time. The others wait here."""
    most_without_slots: int = MOST_WITHOUT_SLOTS
    """Where we place: how many allocations without slots run at a time. The others wait here."""
    taken_out_by: str = ""
    """Where the engine places: by which of its own commands a node is taken out of use, for messages."""
    runs_here: bool = False
    """Whether its processes run on this machine with the packages of the services: modules of entrypoints are
    looked for there, and its runs are lost when another machine takes over."""
    supported_fields: frozenset[str] = frozenset()
    """Fields of configs that have an effect here, of those that have none for processes of this machine."""
    unsupported_fields: tuple[UnsupportedField, ...] = ()
    """Fields of configs that have no effect here, of those that have one for processes of this machine."""
    requirements: tuple[ConfigRule, ...] = ()
    """What configs must be here, and what they may have of the machines."""
    warnings: tuple[WarningRule, ...] = ()
    """What is warned of in configs that it takes."""
    checkpoint_directories: tuple[str, ...] = ()
    """Directories of its machines for checkpoints, of which trials see only what is their workspace's."""

    def machine_of(self, slot_ids: Sequence[int]) -> str:
        """Returns the name of the machine that slots are on, as lists of machines and commands have it.

        Args:
            slot_ids: Slots of one machine; none for a task without slots, which runs on the first.
        """
        nodes = {slot.id: slot.node for slot in self.slots}
        return f"{self.name}/{nodes[slot_ids[0]] if slot_ids else 0}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationSpec:
    """The data that an engine needs to start an allocation. Its supervisors fetch everything else."""

    allocation_id: str
    """Names the allocation everywhere: the engine's job has this name, or one that is made of it alone."""
    placements: tuple[tuple[int, ...], ...]
    """Slots of each container, by rank; an auxiliary task has one container without slots. Where the engine
    places, only their number means something."""
    address: str
    """``host:port`` where the supervisors reach the services."""
    token: str
    """The trial's first token."""
    pool: str = ""
    """Name of the pool that was chosen; the engine has it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The whole config of the experiment, which an engine reads its own sections of."""
    priority: int = DEFAULT_PRIORITY
    """How urgent the experiment is now, from 1 (most) to 99."""
    checkpoint_directory: str = ""
    """The directory of its workspace in one of the pool's ``checkpoint_directories``; empty where its
    checkpoints lie in none of these."""


class ContainerState(Enum):
    """The state of a container, as the engine knows it."""

    UNKNOWN = "UNKNOWN"
    """It was never launched here."""
    QUEUED = "QUEUED"
    """It waits in the engine's own queue."""
    STARTING = "STARTING"
    """It has its machines and is being made ready; an image is pulled, for example."""
    RUNNING = "RUNNING"
    """Its supervisor lives, or cannot be distinguished from one that does."""
    ENDED = "ENDED"
    """Nothing of it runs any more."""


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
    """How it ended by its supervisor's own word; None of an ended one means that its end was not seen: it is
    lost. ``ExitRecord.withdrawn`` and ``ExitRecord.failed_launch`` are of those that never began."""
    reason: str = ""
    """The engine's own words: why it waits, what it is pulling, why it ended."""

    @property
    def lost(self) -> bool:
        """Whether it ended and its supervisor did not say how."""
        return self.state is ContainerState.ENDED and self.exit is None

    @property
    def waits(self) -> bool:
        """Whether its supervisor has not begun yet."""
        return self.state in {ContainerState.QUEUED, ContainerState.STARTING}


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityChange:
    """Slots of some pools were added or removed: ``pools`` returns the current ones."""

    pools: tuple[str, ...]
    """Their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionNotice:
    """The engine will take an allocation's machines away: the allocation must checkpoint and exit now."""

    allocation_id: str
    """The allocation."""
    reason: str
    """The engine's own words."""


EngineEvent: TypeAlias = ContainerReport | CapacityChange | EvictionNotice
"""What an engine reports by itself."""


class Engine(Protocol):
    """The methods of every engine: it has pools, and runs supervisors on their machines.

    Every method can be repeated: launching a running allocation or stopping an ended one changes nothing. A
    method that cannot reach its daemon or cluster raises UnavailableError within its deadline, and is called
    again.

    Features of only some engines are in separate protocols below, which an engine implements in addition.
    """

    @property
    def prompt(self) -> bool:
        """Whether its calls take milliseconds, so that the scheduler waits for its launches."""

    def pools(self) -> Sequence[Pool]:
        """Its pools as they are known now; calls nothing."""

    async def launch(self, spec: AllocationSpec) -> None:
        """Hands an allocation to the engine; what lives of it, waits there, or ended already is left alone.

        Raises:
            UnavailableError: The engine does not answer; whether it has the allocation is not known.
            QuotaError: The pool takes no more now; the message has the engine's reason. It is asked again.
            Exception: It refuses the allocation for good; the message says why.
        """

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Returns the state of every container by rank, and ends what a lost supervisor left running.

        Those that have not ended are watched from now on, also when an earlier life of this process launched
        them. A container counts as running until the last of its processes has ended. Nothing is reported of
        an allocation that was never launched, and of one that was released.
        """

    async def stop(self, allocation_id: str, *, grace: float) -> None:
        """Asks an allocation to exit by SIGTERM, as its engine does it, and kills it once the grace is over.

        What still waits in the engine's queue is taken out of it, and ends by ``ExitRecord.withdrawn``.
        Returns when that was asked for.
        """

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors included."""

    async def release(self, allocation_id: str, *, token: str = "") -> None:
        """Forgets an allocation that was settled.

        What its run left with the engine is removed in the background, once its supervisors have ended and
        its reports and lines have all arrived; what still waits is sent.

        Args:
            allocation_id: The allocation.
            token: A fresh token of the run, for when its own may have expired in a long outage. Engines whose
                runs send by themselves, as long as their own token is valid, have no use for it.
        """

    async def leftovers(self) -> Sequence[str]:
        """Names every allocation of this cluster of which something is there and which was not released."""

    def watch(self) -> AsyncIterator[EngineEvent]:
        """Yields containers that wait, began or ended, changes of capacity and evictions, until ``close``.

        An allocation of which no container is known to wait is taken to have begun: it is not stopped in the
        queue, and is asked after when its lease runs out. An end that is yielded again changes nothing. One
        consumer. An engine whose pools never change and that takes no machines away yields reports of
        containers alone.
        """

    async def close(self) -> None:
        """Ends the watching. Supervisors continue."""


class Backlog(Protocol):
    """What the runs of an engine left that was not sent yet."""

    async def deliver_lines(self, tokens: Mapping[str, str]) -> bool:
        """Sends the lines that allocations left whose containers have ended, for a bounded time.

        What does not arrive in time is sent after it. The log names lines that are late.

        Args:
            tokens: A fresh token of each run, by allocation.

        Returns:
            Whether all lines have arrived.
        """

    async def unreported(self) -> Sequence[str]:
        """Names every allocation of which the engine has reports that have not arrived."""

    async def seconds(self) -> float:
        """For how long reports or lines of some run have waited there without any of them arriving."""


@runtime_checkable
class HasBacklog(Protocol):
    """An engine that knows which reports and lines of its runs are not sent yet.

    For other engines the services assume that everything is sent once a run is released, and lines of a run
    whose supervisor was lost arrive after that.
    """

    @property
    def backlog(self) -> Backlog:
        """What is not sent yet."""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A file that a run left behind."""

    path: str
    """Relative, with the rank of its container first."""
    size: int
    """Bytes."""


class RunFiles(Protocol):
    """The files of ended runs, until their release."""

    async def list_files(self, allocation_id: str) -> Sequence[RunFile]:
        """Lists the files of an allocation by path, without what holds credentials."""

    async def read_file(self, allocation_id: str, path: str, *, offset: int, size: int) -> bytes:
        """Reads a part of a file of an allocation.

        Raises:
            NotFoundError: It is none of those that are listed.
        """


@runtime_checkable
class KeepsRunFiles(Protocol):
    """An engine that can read the files of ended runs until their release, without using slots."""

    @property
    def run_files(self) -> RunFiles:
        """The files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCheck:
    """The result of a node check: whether trials can run on the nodes."""

    pool: str = ""
    """Name of the pool whose nodes they are; empty for all nodes of the engine."""
    usable: bool | None
    """Whether trials can run there; None where that could not be found out now."""
    detail: str
    """What was found."""
    remedy: str = ""
    """What to do about it; empty where they are usable."""


@runtime_checkable
class ChecksNodes(Protocol):
    """An engine that can check on its nodes whether they have everything that trials need."""

    async def check_nodes(self) -> Sequence[NodeCheck]:
        """Looks from every node that takes work, by a job of seconds; within minutes.

        What cannot be looked at, such as for an engine that does not answer, is among what was found.
        """
