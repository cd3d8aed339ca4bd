"""Starts shims inside images on the nodes, by Apptainer, Enroot or Pyxis.

All three run as the job's user, with the host's network and process table, so a shim works there as it does
without a container. The runtime is mounted, and its ``start.sh`` looks up the image's Python. Mounted
directories keep their paths, unless a config changes them. Command lines contain no secrets: tokens are in
the run directory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from resolute.errors import FailedPreconditionError
from resolute_engines.configs.image import image_of
from resolute_engines.protocol import AllocationSpec
from resolute_engines.slurm.settings import ContainerKind, SlurmPoolOptions

SUPPORTED_FIELDS = frozenset({"environment.image", "bind_mounts"})
"""Fields of configs that have an effect in pools of containers beyond those of all pools of Slurm."""
_PLAIN = re.compile(r"/[^:,\s]*")
"""Paths that can be mounted: colons, commas and spaces separate the parts of a mount."""
_OF_NODE = ("SLURM_JOB_ID", "SLURMD_NODENAME")
"""What the shim reads of its environment, and Enroot does not bring into a container by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory of the node that is mounted into the container."""

    source: str
    """Its path on the node."""
    target: str
    """Its path in the container."""
    read_only: bool = False
    """Whether the container may not write to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The container in which a shim runs."""

    kind: ContainerKind
    """What starts it."""
    image: str
    """The image, as a config names it."""
    home: str
    """Folder of the allocation: the home directory in the container."""
    mounts: tuple[Mount, ...]
    """What it sees of the node."""
    gpus: bool
    """Whether it sees the job's GPUs."""
    arguments: tuple[str, ...] = ()
    """Further options of what starts it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStart:
    """The command line that runs a command in a container."""

    step: tuple[str, ...] = ()
    """Options of ``srun`` that put the whole step into one; empty where no ``srun`` is needed."""
    prefix: tuple[str, ...] = ()
    """Words that go before the command."""


def container_of(
    spec: AllocationSpec, *, pool: SlurmPoolOptions, folder: str, runtime: str
) -> Container | None:
    """Tells what the shims of an allocation run in; None in a pool of bare processes.

    Args:
        spec: The allocation.
        pool: Settings of its pool.
        folder: Its folder on the storage that the nodes share.
        runtime: Directory of the nodes with what is mounted into images.

    Raises:
        InvalidArgumentError: Neither the config nor the pool names an image.
        FailedPreconditionError: A mount cannot be made.
    """
    if pool.container is None:
        return None
    return Container(
        kind=pool.container,
        image=image_of(spec.config, gpus=pool.slot_type == "gpu", of_pool=pool.image),
        home=folder,
        mounts=(
            Mount(source=_plain(folder, "directory"), target=folder),
            Mount(source=_plain(runtime, "runtime"), target=runtime, read_only=True),
            *_asked_for(spec.config),
        ),
        gpus=pool.slot_type == "gpu" and any(spec.placements),
        arguments=pool.container_args,
    )


def start_of(container: Container) -> ContainerStart:
    """Tells how a command is run in a container.

    Raises:
        FailedPreconditionError: The image is none that this kind can start.
    """
    return _STARTS[container.kind](container)


def _apptainer(container: Container) -> ContainerStart:
    image = container.image
    return ContainerStart(
        prefix=(
            *("apptainer", "exec"),
            *(["--nv"] if container.gpus else ()),
            f"--home={container.home}",
            *(
                f"--bind={mount.source}:{mount.target}{':ro' if mount.read_only else ''}"
                for mount in container.mounts
                # As the home directory it is mounted already.
                if mount.source != container.home
            ),
            *container.arguments,
            image if image.startswith("/") or "://" in image else f"docker://{image}",
        )
    )


def _enroot(container: Container) -> ContainerStart:
    if not container.image.startswith("/"):
        raise FailedPreconditionError(
            f"environment.image: found {container.image!r}; Enroot starts files: make one by `enroot import` "
            "on storage that the nodes share, and give its absolute path"
        )
    variables = [*_OF_NODE, f"HOME={container.home}"]
    if container.gpus:
        # Slurm's own confinement of devices decides which of them there are.
        variables += [
            "CUDA_VISIBLE_DEVICES",
            "NVIDIA_VISIBLE_DEVICES=all",
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ]
    return ContainerStart(
        prefix=(
            *("enroot", "start"),
            *(f"--env={variable}" for variable in variables),
            *(
                f"--mount={mount.source}:{mount.target}:none:"
                f"x-create=dir,rbind{',ro' if mount.read_only else ''}"
                for mount in container.mounts
            ),
            *container.arguments,
            container.image,
        )
    )


def _pyxis(container: Container) -> ContainerStart:
    mounts = ",".join(
        f"{mount.source}:{mount.target}{':ro' if mount.read_only else ''}" for mount in container.mounts
    )
    return ContainerStart(
        # Of the GPUs its own hook takes care, by the image's NVIDIA_VISIBLE_DEVICES.
        step=(
            f"--container-image={_of_registry(container.image)}",
            f"--container-mounts={mounts}",
            f"--container-workdir={container.home}",
            "--no-container-mount-home",
            "--no-container-entrypoint",
            *container.arguments,
        ),
        prefix=("env", f"HOME={container.home}"),
    )


_STARTS: Mapping[ContainerKind, Callable[[Container], ContainerStart]] = {
    "apptainer": _apptainer,
    "enroot": _enroot,
    "pyxis": _pyxis,
}


def _of_registry(image: str) -> str:
    """Writes the name of an image as Pyxis has it: ``nvcr.io#nvidia/pytorch:24.01``."""
    image = image.removeprefix("docker://")
    registry, slash, rest = image.partition("/")
    if not registry or not slash or "#" in image:
        return image
    if registry == "docker.io":
        return rest
    return f"{registry}#{rest}" if {".", ":"} & set(registry) or registry == "localhost" else image


def _asked_for(config: Mapping[str, Any]) -> list[Mount]:
    mounts = []
    for index, mount in enumerate(config.get("bind_mounts") or ()):
        at = f"bind_mounts[{index}]"
        mounts.append(
            Mount(
                source=_plain(mount["host_path"], f"{at}.host_path"),
                target=_plain(mount["container_path"], f"{at}.container_path"),
                read_only=bool(mount.get("read_only")),
            )
        )
    storage: Mapping[str, Any] = config.get("checkpoint_storage") or {}
    if storage.get("type") == "shared_fs" and storage.get("host_path"):
        path = _plain(storage["host_path"], "checkpoint_storage.host_path")
        mounts.append(Mount(source=path, target=path))
    return mounts


def _plain(path: str, field: str) -> str:
    if not _PLAIN.fullmatch(path):
        raise FailedPreconditionError(
            f"{field}: found {path!r}; containers of Slurm mount absolute paths without colons, commas and "
            "spaces: choose another"
        )
    return path
