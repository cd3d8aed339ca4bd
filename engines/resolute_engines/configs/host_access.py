"""The directories and devices of an engine's machine that configs may use: only those the operator names."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator

from resolute.contracts.documents.rejections import reject
from resolute.contracts.documents.section import Name
from resolute.errors import Violation


def _plain(path: str) -> str:
    if not posixpath.isabs(path) or path != posixpath.normpath(path) or path.startswith("//"):
        raise reject("an absolute path without . and .., and without a slash at its end")
    if path == "/":
        raise reject("a path below /, because / gives access to the whole machine")
    return path


HostPath = Annotated[Name, AfterValidator(_plain)]
"""A path of the engine's machine, spelled in the one way by which it is compared."""


@dataclass(frozen=True, kw_only=True)
class HostAccess:
    """The parts of an engine's machine that its settings allow configs to use.

    Only a directory that the operator named is mounted, never a subdirectory of it. Trials may write to it
    and could replace a subdirectory by a link, which the engine would follow to any place on its machine.
    Inside a container a link can only lead to paths of the container.
    """

    where: str
    """Place of these settings in their file, for messages."""
    bind_mounts: tuple[str, ...] = ()
    """Directories that configs may mount, and devices that they may have."""
    checkpoint_directories: tuple[str, ...] = ()
    """Directories for checkpoints of the type ``shared_fs``. Each workspace has a directory of its own in
    them, which is mounted for its trials; they themselves never are."""
    capabilities: tuple[str, ...] = ()
    """Linux capabilities that configs may add."""

    def faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        """What a config asks for that is not named; each fault names the setting."""
        yield from self._mount_faults(config)
        yield from self._storage_faults(config)
        yield from self._capability_faults(config)

    def mountable(self, path: str) -> str | None:
        """The named directory, or device, that a path spells; None if there is none."""
        normal = posixpath.normpath(path)
        return normal if normal in self.bind_mounts else None

    def is_of_a_workspace(self, directory: str) -> bool:
        """Whether a directory is that of a workspace in a named one; see ``WorkspaceDirectories``."""
        path = PurePosixPath(directory)
        return str(path.parent.parent) in self.checkpoint_directories and ".." not in path.parts

    def _mount_faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        mounts = config.get("bind_mounts") or ()
        devices = (config.get("resources") or {}).get("devices") or ()
        for field, asked in (("bind_mounts", mounts), ("resources.devices", devices)):
            for index, one in enumerate(asked):
                if self.mountable(one["host_path"]) is None:
                    yield Violation(
                        f"{field}[{index}].host_path",
                        f"found {one['host_path']!r}; {self._nearest(one['host_path'])}",
                    )

    def _nearest(self, path: str) -> str:
        """What to do about a path that is not named."""
        operator = f"or let the operator add it to {self.where}.bind_mounts"
        for mount in self.bind_mounts:
            if is_below(path, mount):
                return f"mount {mount} itself, in which it lies, {operator}"
        return f"the engine lets configs mount {_listed(self.bind_mounts)}: name one of those, {operator}"

    def _storage_faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        wanted = shared_directory(config)
        if wanted is not None and named_directory(config, self.checkpoint_directories) is None:
            yield Violation(
                "checkpoint_storage.host_path",
                f"found {wanted!r}; the engine keeps checkpoints in {_listed(self.checkpoint_directories)}: "
                "name a directory there, or an object store, or let the operator add it to "
                f"{self.where}.checkpoint_directories",
            )

    def _capability_faults(self, config: Mapping[str, Any]) -> Iterator[Violation]:
        allowed = sorted(map(capability, self.capabilities))
        for index, name in enumerate((config.get("environment") or {}).get("add_capabilities") or ()):
            if capability(name) not in allowed:
                yield Violation(
                    f"environment.add_capabilities[{index}]",
                    f"found {name!r}; the engine lets configs add {_listed(allowed)}: leave it out, or let "
                    f"the operator add it to {self.where}.capabilities",
                )


def capability(name: str) -> str:
    """The name of a Linux capability as engines have it."""
    return name.upper().removeprefix("CAP_")


def shared_directory(config: Mapping[str, Any]) -> str | None:
    """Where the checkpoints of a config lie on the engine's machine, if they do."""
    section = config.get("checkpoint_storage") or {}
    if section.get("type") != "shared_fs":
        return None
    return posixpath.normpath(posixpath.join(section["host_path"], section.get("storage_path") or ""))


def named_directory(config: Mapping[str, Any], directories: Sequence[str]) -> str | None:
    """The one of some directories in which the checkpoints of a config lie; None if they lie in none."""
    wanted = shared_directory(config)
    if wanted is None:
        return None
    return next((directory for directory in directories if is_below(wanted, directory)), None)


def is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory, or lies in it, as both are spelled."""
    normal = PurePosixPath(posixpath.normpath(path))
    return PurePosixPath(directory) in (normal, *normal.parents)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
