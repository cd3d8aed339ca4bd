"""The API request for an allocation, made from its config and the settings of its pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from resolute_engines.configs.host_access import HostAccess, capability
from resolute_engines.configs.image import image_of
from resolute_engines.container.files import MOUNTS, RUN, VOLUME
from resolute_engines.container.settings import ContainerEngineOptions, ContainerPoolOptions
from resolute_engines.protocol import AllocationSpec

CLUSTER, ALLOCATION, RANK = "resolute.cluster", "resolute.allocation", "resolute.rank"
"""Labels of everything that is a cluster's."""
RUNTIME = "/opt/resolute"
"""Where a container sees the runtime."""
SUPPORTED_FIELDS = frozenset(
    {
        *(f"environment.{name}" for name in ("image", "ports", "force_pull_image")),
        *(f"environment.{name}" for name in ("add_capabilities", "drop_capabilities")),
        *("bind_mounts", "resources.devices", "resources.shm_size"),
    }
)
"""What of a config has an effect in containers beyond what has for processes."""
_NANO = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class ContainerRequest:
    """The specification of an allocation's containers."""

    spec: AllocationSpec
    """The allocation."""
    labels: Mapping[str, str]
    """Those of everything of it."""
    engine: ContainerEngineOptions
    """Settings of the engine."""
    pool: ContainerPoolOptions
    """Settings of the pool."""
    runtime: str
    """Directory on the engine's machine with the runtime."""
    access: HostAccess
    """What of the engine's machine the config may have."""

    @property
    def image(self) -> str:
        """The image.

        Raises:
            InvalidArgumentError: Neither the config nor the pool names one.
        """
        return image_of(self.spec.config, gpus=bool(self.pool.gpus), of_pool=self.pool.image)

    @property
    def pulls_always(self) -> bool:
        """Whether the image is pulled even when it is there."""
        return bool(self._environment.get("force_pull_image"))

    def body(self, rank: int, *, name: str, network: str, address: str) -> dict[str, Any]:
        """What creates the container of a rank.

        Args:
            rank: The container.
            name: Its name, which is also the volume's.
            network: Its network; empty for the engine's default.
            address: Its address there; empty for any.

        Raises:
            InvalidArgumentError: There is no image.
        """
        ports: dict[str, Any] = {
            f"{port}/tcp": {} for port in (self._environment.get("ports") or {}).values()
        }
        endpoint = {"IPAMConfig": {"IPv4Address": address}} if address else {}
        return {
            **self.command(name, "resolute_launch.supervisor", RUN),
            "Labels": {**self.labels, RANK: str(rank)},
            "ExposedPorts": ports,
            "HostConfig": {
                **self._confined(name, slots=len(self.spec.placements[rank])),
                "PortBindings": {port: [{"HostIp": "127.0.0.1", "HostPort": ""}] for port in ports},
                "Devices": self._devices(),
                "DeviceRequests": self._gpus(rank),
                **({"NetworkMode": network} if network else {}),
            },
            **({"NetworkingConfig": {"EndpointsConfig": {network: endpoint}}} if network else {}),
        }

    def orphan_upload_body(self, name: str, *, network: str, arguments: list[str]) -> dict[str, Any]:
        """What creates a container that sends what an ended one left in its volume."""
        return {
            **self.command(name, "resolute_launch.supervisor.orphan_upload", RUN, *arguments),
            "Labels": {**self.labels},
            "HostConfig": {**self._confined(name, slots=1), **({"NetworkMode": network} if network else {})},
        }

    def listing_body(self, name: str) -> dict[str, Any]:
        """What creates a container that lists the files which an ended one left in its volume."""
        return {
            **self.command(name, "resolute_launch.container.left_files", RUN),
            "Labels": {**self.labels},
            "HostConfig": {**self._confined(name, slots=1), "NetworkMode": "none"},
        }

    def command(self, name: str, *arguments: str) -> dict[str, Any]:
        """What runs, and as whom."""
        return {
            "Image": self.image,
            "Entrypoint": ["/bin/sh"],
            "Cmd": [f"{RUNTIME}/start.sh", *arguments],
            "User": self.engine.user,
            "Env": [f"HOME={VOLUME}", "PYTHONUNBUFFERED=1"],
            "WorkingDir": "/",
            "Hostname": name[-63:].strip(".-").replace(".", "-"),
        }

    def _confined(self, volume: str, *, slots: int) -> dict[str, Any]:
        shares = max(slots, 1)
        limits: dict[str, Any] = {"PidsLimit": self.pool.pids}
        if self.pool.cpus_per_slot is not None:
            limits["NanoCpus"] = int(self.pool.cpus_per_slot * shares * _NANO)
        if self.pool.memory_per_slot is not None:
            limits["Memory"] = limits["MemorySwap"] = self.pool.memory_per_slot * shares
        limits["ShmSize"] = self._resources.get("shm_size") or self.pool.shm_size
        return {
            **limits,
            "CapDrop": ["ALL"],
            "CapAdd": self._capabilities(),
            "SecurityOpt": ["no-new-privileges"],
            "Mounts": [
                {"Type": "volume", "Source": volume, "Target": VOLUME},
                {"Type": "bind", "Source": self.runtime, "Target": RUNTIME, "ReadOnly": True},
                *self._bind_mounts(),
            ],
        }

    def _capabilities(self) -> list[str]:
        dropped = {capability(name) for name in self._environment.get("drop_capabilities") or ()}
        wanted = [capability(name) for name in self._environment.get("add_capabilities") or ()]
        return [name for name in wanted if name not in dropped]

    @property
    def links(self) -> dict[str, str]:
        """What is linked into the working directory, by its path there.

        A mount in the working directory itself would be emptied before the code is unpacked there.
        """
        return {
            path: f"{MOUNTS}/{number}"
            for number, mount in enumerate(self.spec.config.get("bind_mounts") or ())
            if not PurePosixPath(path := mount["container_path"]).is_absolute()
        }

    def _bind_mounts(self) -> list[dict[str, Any]]:
        mounts = [
            _bind(
                self._named(mount["host_path"]),
                self.links.get(mount["container_path"], mount["container_path"]),
                read_only=bool(mount.get("read_only")),
                propagation=mount.get("propagation") or "rprivate",
            )
            for mount in self.spec.config.get("bind_mounts") or ()
        ]
        checkpoints = self.spec.checkpoint_directory
        if checkpoints:
            assert self.access.is_of_a_workspace(checkpoints), (
                f"{checkpoints} is not a directory of a workspace"
            )
            mounts.append(_bind(checkpoints, checkpoints))
        return mounts

    def _devices(self) -> list[dict[str, str]]:
        return [
            {
                "PathOnHost": self._named(device["host_path"]),
                "PathInContainer": device["container_path"],
                "CgroupPermissions": device.get("mode") or "mrw",
            }
            for device in self._resources.get("devices") or ()
        ]

    def _gpus(self, rank: int) -> list[dict[str, Any]]:
        names = [self.pool.gpus[slot] for slot in self.spec.placements[rank] if self.pool.gpus]
        return [{"Driver": "cdi", "DeviceIDs": names}] if names else []

    def _named(self, path: str) -> str:
        named = self.access.mountable(path)
        assert named is not None, f"{path} was required of the settings"
        return named

    @property
    def _environment(self) -> Mapping[str, Any]:
        return self.spec.config.get("environment") or {}

    @property
    def _resources(self) -> Mapping[str, Any]:
        return self.spec.config.get("resources") or {}


def _bind(
    source: str, target: str, *, read_only: bool = False, propagation: str = "rprivate"
) -> dict[str, Any]:
    return {
        "Type": "bind",
        "Source": source,
        "Target": target,
        "ReadOnly": read_only,
        "BindOptions": {"Propagation": propagation},
    }
