"""Networks of allocations, of which none reaches another."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from resolute.errors import ConflictError, NotFoundError
from resolute_experiments.resources.container.api import PODMAN, DockerApi

_PODMAN = f"{PODMAN}/networks"
"""Where Podman's own API has networks. Its version 4.3 forgets that a network is isolated once Docker's API
has been asked for it before its first container began."""
_FIRST_ADDRESS = 10
"""The address of rank 0 in the network of its allocation, from the network's own on."""


class Networks:
    """The networks of an engine.

    Args:
        api: The engine.
    """

    def __init__(self, api: DockerApi) -> None:
        self._api = api
        self._podman: bool | None = None

    async def make(self, name: str, labels: Mapping[str, str]) -> None:
        """Makes a network, unless it is there."""
        try:
            await self._describe(name)
        except NotFoundError:
            # Docker isolates every bridge from the others; Podman has to be told.
            options = {"isolate": "true"} if await self._is_podman() else {}
            body = {"Name": name, "Driver": "bridge", "Labels": dict(labels), "Options": options}
            with suppress(ConflictError):
                await self._api.post("/networks/create", {**body, "CheckDuplicate": True})

    async def address(self, name: str, rank: int) -> str:
        """The address of a container in its allocation's network, so that every rank knows its own."""
        described = await self._describe(name)
        subnet = (
            described["subnets"][0]["subnet"]
            if await self._is_podman()
            else described["IPAM"]["Config"][0]["Subnet"]
        )
        return str(ipaddress.ip_network(subnet).network_address + _FIRST_ADDRESS + rank)

    async def labels(self, label: str) -> Mapping[str, Mapping[str, str]]:
        """The labels of each network that has one, by the network's name."""
        query = {"label": [label]}
        if await self._is_podman():
            listed = await self._api.get(f"{_PODMAN}/json", filters=query)
            return {one["name"]: one.get("labels") or {} for one in listed or ()}
        listed = await self._api.get("/networks", filters=query)
        return {one["Name"]: one.get("Labels") or {} for one in listed or ()}

    async def remove(self, name: str) -> None:
        """Removes a network in which no container is any more."""
        await self._api.delete(f"/networks/{name}")

    async def _describe(self, name: str) -> Any:
        return await self._api.get(
            f"{_PODMAN}/{name}/json" if await self._is_podman() else f"/networks/{name}"
        )

    async def _is_podman(self) -> bool:
        if self._podman is None:
            described = await self._api.get("/version")
            parts = described.get("Components") or ()
            self._podman = any("Podman" in part.get("Name", "") for part in parts)
        return self._podman
