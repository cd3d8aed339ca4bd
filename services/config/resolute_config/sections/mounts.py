"""Directories and devices of the host for containers: ``bind_mounts`` and ``resources.devices``."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, Field

from resolute.contracts.documents.rejections import combined_error, located_error, reject
from resolute.contracts.documents.section import Flag, Name, Section, Text
from resolute_config.sections.storage import AbsolutePath, Propagation

_MODES = re.compile(r"[rwm]+")


_OWN = (PurePosixPath("/resolute"), PurePosixPath("/opt/resolute"))
"""Where containers have what the platform puts into them."""


def _container_path(path: str) -> str:
    # From the topmost directory on, whichever the path begins at: a relative one must not leave its own.
    place = posixpath.normpath(path).lstrip("/")
    if place == ".":
        raise reject("a path other than the working directory itself")
    if not place:
        raise reject("a path other than the topmost directory")
    if place.split("/")[0] == "..":
        raise reject("an absolute path, or one below the working directory")
    if path.startswith("/"):
        for own in _OWN:
            if PurePosixPath("/", place).is_relative_to(own):
                raise reject(f"a path outside of {own}, which is the platform's own")
        return path
    return place


def _mode(mode: str) -> str:
    if not _MODES.fullmatch(mode):
        raise reject("a combination of r, w and m")
    return mode


class BindMount(Section):
    """A directory of the host that is mounted into the container.

    Attributes:
        host_path: The directory on the host.
        container_path: Path in the container; a relative path is below the working directory.
        read_only: Whether the container may not write to it.
        propagation: Propagation of mounts below it.
    """

    host_path: AbsolutePath = Field(description="an absolute path on the host")
    container_path: Annotated[Name, AfterValidator(_container_path)] = Field(
        description="the path that the container sees"
    )
    read_only: Flag = False
    propagation: Propagation = "rprivate"


class Device(Section):
    """A device of the host inside the container.

    Attributes:
        host_path: The device on the host.
        container_path: Path in the container.
        mode: Permissions of the container: r(ead), w(rite), m(ake nodes).
    """

    shape: ClassVar[str] = 'a map with host_path and container_path, or "/host/path:/container/path[:rwm]"'

    host_path: AbsolutePath = Field(description="an absolute path on the host")
    container_path: AbsolutePath = Field(description="the absolute path that the container sees")
    mode: Annotated[Text, AfterValidator(_mode)] = "mrw"


_Mount = TypeVar("_Mount", BindMount, Device)


def _one_mount_a_path(mounts: Sequence[_Mount]) -> Sequence[_Mount]:
    seen: set[str] = set()
    details = []
    for index, mount in enumerate(mounts):
        if mount.container_path in seen:
            error = reject(
                "a path of its own for each mount", problem=f"{mount.container_path} is mounted twice"
            )
            details.append(located_error((index, "container_path"), mount.container_path, error))
        seen.add(mount.container_path)
    if details:
        raise combined_error(details)
    return mounts


def _none_in_another(mounts: Sequence[BindMount]) -> Sequence[BindMount]:
    """Those beside the code are links: one in another would lie in a directory of the host."""
    beside = {path for mount in mounts if not (path := PurePosixPath(mount.container_path)).is_absolute()}
    details = []
    for index, mount in enumerate(mounts):
        above = next(
            (parent for parent in PurePosixPath(mount.container_path).parents if parent in beside), None
        )
        if above is not None:
            problem = f"{mount.container_path} lies in another mount, {above}"
            error = reject("a path of its own for each mount", problem=problem)
            details.append(located_error((index, "container_path"), mount.container_path, error))
    if details:
        raise combined_error(details)
    return mounts


BindMounts: TypeAlias = Annotated[
    tuple[BindMount, ...], AfterValidator(_one_mount_a_path), AfterValidator(_none_in_another)
]
Devices: TypeAlias = Annotated[tuple[Device, ...], AfterValidator(_one_mount_a_path)]
