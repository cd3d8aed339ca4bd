"""Networks of allocations, isolated from each other."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from resolute.errors import ConflictError, FailedPreconditionError, NotFoundError, QuotaError, ResoluteError
from resolute_engines.container.client import PODMAN, DockerApi

_PODMAN = f"{PODMAN}/networks"
"""Where Podman's own API has networks. Its version 4.3 forgets that a network is isolated once Docker's API
has been asked for it before its first container began."""
_SUBNET = "-subnet"
"""What the name of a network that finds a free subnet ends with."""
_NO_SUBNET_LEFT = (
    "could not find an available, non-overlapping IPv4 address pool",
    "all predefined address pools have been fully subnetted",
    "could not find free subnet",
)
"""What Docker says, newer ones say, and Podman says."""
_ATTEMPTS = 5
_FIRST_ADDRESS = 10
"""The address of rank 0 in the network of its allocation, from the network's own on."""


class Networks:
    """The networks on one daemon.

    Args:
        api: The daemon.
    """

    def __init__(self, api: DockerApi) -> None:
        self._api = api
        self._choosing = asyncio.Lock()

    async def make(self, name: str, labels: Mapping[str, str]) -> None:
        """Makes a network, unless it is there.

        Raises:
            QuotaError: Other networks have all subnets that the engine may give.
        """
        try:
            await self._describe(name)
        except NotFoundError:
            if await self._api.is_podman():
                # Docker isolates every bridge from the others; Podman needs an option.
                await self._create(name, labels, Options={"isolate": "true"})
            else:
                await self._make_with_subnet(name, labels)

    async def _make_with_subnet(self, name: str, labels: Mapping[str, str]) -> None:
        """Makes a network with a given subnet: in others Docker does not accept chosen addresses.

        Docker chooses a free subnet for a first network, which then makes room for the one that is wanted.
        """
        probe = f"{name}{_SUBNET}"
        async with self._choosing:
            for left in reversed(range(_ATTEMPTS)):
                await self._create(probe, labels)
                subnet = (await self._describe(probe))["IPAM"]["Config"][0]["Subnet"]
                await self.remove(probe)
                try:
                    await self._create(name, labels, IPAM={"Config": [{"Subnet": subnet}]})
                except FailedPreconditionError:
                    # Somebody else was given it in the meantime.
                    if not left:
                        raise
                else:
                    return

    async def _create(self, name: str, labels: Mapping[str, str], **options: Any) -> None:
        body = {"Name": name, "Driver": "bridge", "Labels": dict(labels), **options}
        try:
            with suppress(ConflictError):
                await self._api.post("/networks/create", {**body, "CheckDuplicate": True})
        except ResoluteError as failure:
            if any(words in str(failure) for words in _NO_SUBNET_LEFT):
                raise QuotaError(
                    "the engine has no subnet left for the network of another run: remove unused "
                    f"networks, or give the engine more subnets by default-address-pools ({failure})"
                ) from failure
            raise

    async def address(self, name: str, rank: int) -> str:
        """The address of a container in its allocation's network, so that every rank knows its own."""
        described = await self._describe(name)
        subnet = (
            described["subnets"][0]["subnet"]
            if await self._api.is_podman()
            else described["IPAM"]["Config"][0]["Subnet"]
        )
        return str(ipaddress.ip_network(subnet).network_address + _FIRST_ADDRESS + rank)

    async def labels(self, label: str) -> Mapping[str, Mapping[str, str]]:
        """The labels of each network that has one, by the network's name."""
        query = {"label": [label]}
        if await self._api.is_podman():
            listed = await self._api.get(f"{_PODMAN}/json", filters=query)
            return {network["name"]: network.get("labels") or {} for network in listed or ()}
        listed = await self._api.get("/networks", filters=query)
        return {network["Name"]: network.get("Labels") or {} for network in listed or ()}

    async def remove(self, name: str) -> None:
        """Removes a network in which no container is any more."""
        await self._api.delete(f"/networks/{name}")

    async def _describe(self, name: str) -> Any:
        return await self._api.get(
            f"{_PODMAN}/{name}/json" if await self._api.is_podman() else f"/networks/{name}"
        )
