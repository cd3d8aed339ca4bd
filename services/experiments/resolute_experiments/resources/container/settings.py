"""Settings of an engine of containers and of its pools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resolute_experiments.config.sections.resources import ByteSize
from resolute_experiments.config.validation.section import Flag, Name, Number, Section, SmallCount, Text

Seconds = Annotated[Number, Field(gt=0)]


class ContainerEngineOptions(Section):
    """What may be said of an engine of type ``container``.

    Attributes:
        url: Where Docker's API is served.
        services_address: ``host:port`` where containers reach the services; empty for the same as here.
        services_certificate: File with the certificates to trust there, as PEM; empty for those that this
            machine trusts at the services, if any.
        runtime: Directory on the engine's machine with what is mounted into images so that supervisors run
            there; empty to make it from this installation, when the engine is on this machine.
        user: Who trials are in their containers, as ``uid:gid``.
        networks: Whether each allocation has a network of its own. If not, all share the engine's default.
        bind_mounts: Directories of the engine's machine that configs may mount, and what lies below.
        capabilities: Linux capabilities that configs may add.
        credentials: Files with credentials for registries, by registry, as ``docker login`` writes them.
    """

    url: Name = "unix:///run/podman/podman.sock"
    services_address: Text = ""
    services_certificate: Text = ""
    runtime: Text = ""
    user: Annotated[Text, Field(pattern=r"^[0-9]+:[0-9]+$")] = "10001:10001"
    networks: Flag = True
    bind_mounts: tuple[Name, ...] = ()
    capabilities: tuple[Name, ...] = ()
    credentials: dict[str, Name] | None = None


class ContainerPoolOptions(Section):
    """What may be said of a pool of containers.

    Attributes:
        slots: Number of slots: processor shares, where it has no GPUs.
        gpus: Names of GPUs, as CDI has them, such as ``nvidia.com/gpu=0``; each is a slot.
        slots_per_node: Most slots of a container: a trial with more gets several. Left out, all of the pool.
        image: Image of trials whose config names none.
        cpus_per_slot: Processors of each slot; trials without slots get as many.
        memory_per_slot: Memory of each slot; trials without slots get as much.
        pids: Most processes and threads of a container.
    """

    slots: Annotated[SmallCount, Field(ge=1)] | None = None
    gpus: tuple[Name, ...] = ()
    slots_per_node: Annotated[SmallCount, Field(ge=1)] | None = None
    image: Text = ""
    cpus_per_slot: Annotated[Number, Field(gt=0)] | None = None
    memory_per_slot: ByteSize | None = None
    pids: Annotated[SmallCount, Field(ge=16)] = 4096
