"""Settings of a container engine and of its pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import ByteSize, Flag, Name, Number, Section, SmallCount, Text
from resolute_engines.configs.host_access import HostPath
from resolute_engines.protocol import MOST_WITHOUT_SLOTS


class ContainerEngineOptions(Section):
    """Options of an engine of type ``container``.

    Attributes:
        url: Address of Docker's API.
        services_address: ``host:port`` at which containers reach the services; empty for the same address as
            here.
        services_certificate: PEM file with the certificates to trust at that address; empty for those of the
            services.
        runtime: Directory on the engine's machine with the runtime, which is mounted into images; empty to
            build it from this installation, if the engine is on this machine.
        user: User of trials in their containers, as ``uid:gid``.
        networks: Whether each allocation has a network of its own. If not, all share the daemon's default
            network.
        bind_mounts: Directories of the engine's machine that configs may mount, and devices that they may
            use. A subdirectory is visible within its mounted directory, but cannot be mounted by itself.
        checkpoint_directories: Directories of the engine's machine for checkpoints of the type ``shared_fs``.
            Each workspace has its own subdirectory, which only its trials see.
        capabilities: Linux capabilities that configs may add.
        credentials: File with credentials for registries, in the format of ``docker login``; empty for none.
        image_timeout: Seconds for which a registry may be unavailable or answer with errors before a run
            fails.
    """

    renamed: ClassVar[Mapping[str, str]] = {"image_patience": "image_timeout"}

    url: Name = "unix:///run/podman/podman.sock"
    services_address: Text = ""
    services_certificate: Text = ""
    runtime: Text = ""
    user: Annotated[Text, Field(pattern=r"^[0-9]+:[0-9]+$")] = "10001:10001"
    networks: Flag = True
    bind_mounts: tuple[HostPath, ...] = ()
    checkpoint_directories: tuple[HostPath, ...] = ()
    capabilities: tuple[Name, ...] = ()
    credentials: Text = ""
    image_timeout: Annotated[Number, Field(ge=0)] = 300

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """A directory below another that trials may write to is whatever a trial makes of it."""
        fields = ("bind_mounts", "checkpoint_directories")
        named = {path for field in fields for path in _texts(given.get(field))}
        for field in fields:
            for path in _texts(given.get(field)):
                for above in sorted(named & set(map(str, PurePosixPath(path).parents))):
                    yield (
                        field,
                        reject(
                            "",
                            problem=f"{path} lies in {above}, where a trial may put a link in its place",
                            hint="name one of the two",
                        ),
                    )


def _texts(value: Any) -> list[str]:
    """The texts of a list that was not validated yet."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []


class ContainerPoolOptions(Section):
    """Options of a pool of containers.

    Attributes:
        slots: Number of slots; without GPUs they are shares of the processors.
        gpus: CDI names of GPUs, such as ``nvidia.com/gpu=0``; each is a slot.
        slots_per_node: Most slots of a container. A trial with more slots gets several containers. The
            default is the number of slots of the pool.
        image: Default image of trials.
        cpus_per_slot: Processors of each slot; a trial without slots gets the same number.
        memory_per_slot: Memory of each slot; a trial without slots gets the same amount.
        pids: Most processes and threads of a container.
        max_aux_containers_per_agent: Most trials without slots at one time; others wait.
        shm_size: Default size of the shared memory of containers.
    """

    slots: Annotated[SmallCount, Field(ge=1)] | None = None
    gpus: tuple[Name, ...] = ()
    slots_per_node: Annotated[SmallCount, Field(ge=1)] | None = None
    image: Text = ""
    cpus_per_slot: Annotated[Number, Field(gt=0)] | None = None
    memory_per_slot: ByteSize | None = None
    pids: Annotated[SmallCount, Field(ge=16)] = 4096
    max_aux_containers_per_agent: Annotated[SmallCount, Field(ge=1)] = MOST_WITHOUT_SLOTS
    # What Determined gives. By itself a container has 64 MiB, in which workers of a DataLoader die.
    shm_size: ByteSize = 4 << 30
