"""The containers, volumes and networks of runs on one daemon, looked up by labels and names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import structlog
from pydantic import ByteSize

from resolute.contracts.calls.deadlines import in_time
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.times import seconds_at
from resolute.errors import (
    ConflictError,
    DeadlineError,
    FailedPreconditionError,
    NotFoundError,
    UnavailableError,
)
from resolute_engines.container.client import DockerApi
from resolute_engines.container.files import (
    EXIT_FILE,
    LISTING_FILE,
    SUPERVISOR_FILE,
    VOLUME,
    exit_record,
    token_file,
)
from resolute_engines.container.networks import Networks
from resolute_engines.container.request import ALLOCATION, CLUSTER, RANK, ContainerRequest
from resolute_engines.kit.reports import report_of
from resolute_engines.protocol import ContainerReport, ContainerState

_log = structlog.get_logger("container")
_LOG_LINES = 20
_KILL_SECONDS = 15.0
"""How long a container may take to end that was killed."""
_KILLED = 137
"""The exit code of what SIGKILL ended."""
_ORPHAN_UPLOAD = "-salvage"
"""Ends the name of a container that sends what another left."""
_LISTING = "-files"
"""Ends the name of a container that lists what another left."""
_UNBEGUN = frozenset({"created", "configured", "initialized"})
_RUNNING = frozenset({"running", "paused", "restarting", "stopping"})
_REMOVING = "removing"


@dataclass(frozen=True, kw_only=True)
class ListedContainer:
    """A container in the daemon's list."""

    name: str
    """Its name, and that of its volume."""
    rank: int
    """Its place in its allocation."""
    status: str
    """What it does, in the engine's words."""
    allocation_id: str
    """The allocation."""

    @property
    def unbegun(self) -> bool:
        """Whether it was created and not started yet."""
        return self.status in _UNBEGUN

    @property
    def ended(self) -> bool:
        """Whether it began and nothing of it lives."""
        return not self.unbegun and not self.running

    @property
    def running(self) -> bool:
        """Whether any of its processes may live."""
        return self.status in _RUNNING


class Containers:
    """The containers of a cluster on one daemon.

    Args:
        api: The daemon.
        cluster_id: UUID of the cluster.
    """

    def __init__(self, api: DockerApi, *, cluster_id: str) -> None:
        self._api = api
        self._cluster_id = cluster_id
        self.networks = Networks(api)
        """Those that its allocations are in."""

    def labels(self, allocation_id: str) -> Mapping[str, str]:
        """What everything of an allocation is found by."""
        return {CLUSTER: self._cluster_id, ALLOCATION: allocation_id}

    def prefix(self, allocation_id: str) -> str:
        """What the names of everything of an allocation begin with; its network has this name alone."""
        return f"resolute-{self._cluster_id[:8]}-{allocation_id}"

    def name(self, allocation_id: str, rank: int) -> str:
        """Name of a container and of its volume."""
        return f"{self.prefix(allocation_id)}-{rank}"

    async def of(self, allocation_id: str) -> list[ListedContainer]:
        """The containers of an allocation, by rank; those that are being removed are gone first.

        A Podman that was killed while it removed one says so for ever, and goes on when it is asked to.
        """
        containers = []
        for found in await self._listed("/containers/json", self.labels(allocation_id), all=True):
            status = str(found["State"]).lower()
            if status == _REMOVING:
                with suppress(ConflictError):  # Docker's word for one that is being removed.
                    await self._api.delete(f"/containers/{found['Id']}", force=True)
            elif RANK in found["Labels"]:
                name, rank = found["Names"][0].removeprefix("/"), int(found["Labels"][RANK])
                containers.append(
                    ListedContainer(name=name, rank=rank, status=status, allocation_id=allocation_id)
                )
        return sorted(containers, key=lambda one: one.rank)

    async def allocations(self) -> list[str]:
        """Every allocation of the cluster of which there is anything."""
        cluster = {CLUSTER: self._cluster_id}
        labels_of_all = [
            *(found["Labels"] for found in await self._listed("/containers/json", cluster, all=True)),
            *(volume["Labels"] for volume in await self._listed("/volumes", cluster)),
            *(await self._networks(cluster)).values(),
        ]
        return sorted({labels[ALLOCATION] for labels in labels_of_all if ALLOCATION in labels})

    async def mounted(self) -> set[str]:
        """What of the engine's machine is mounted into containers, whosever they are."""
        sources = set[str]()
        for found in await self._api.get("/containers/json", all=True) or ():
            with suppress(NotFoundError):  # It was removed meanwhile.
                described = await self._api.get(f"/containers/{found['Id']}/json")
                sources |= {str(mount.get("Source")) for mount in described.get("Mounts") or ()}
        return sources

    async def running_with(self, directory: str) -> list[str]:
        """Names of the cluster's running containers into which a directory is mounted."""
        names = []
        for found in await self._listed("/containers/json", {CLUSTER: self._cluster_id}):
            with suppress(NotFoundError):  # It was removed meanwhile.
                described = await self._api.get(f"/containers/{found['Id']}/json")
                if any(mount.get("Source") == directory for mount in described.get("Mounts") or ()):
                    names.append(str(described["Name"]).removeprefix("/"))
        return sorted(names)

    async def _listed(self, path: str, labels: Mapping[str, str], **query: Any) -> list[dict[str, Any]]:
        wanted = [f"{key}={value}" for key, value in labels.items()]
        answer = await self._api.get(path, filters={"label": wanted}, **query)
        listed = (answer or {}).get("Volumes") if path == "/volumes" else answer
        # Podman lists volumes that have any of the labels.
        return [item for item in listed or () if labels.items() <= (item.get("Labels") or {}).items()]

    async def _networks(self, labels: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
        listed = await self.networks.labels(f"{CLUSTER}={self._cluster_id}")
        return {name: has for name, has in listed.items() if labels.items() <= has.items()}

    async def create(self, name: str, body: Mapping[str, Any], labels: Mapping[str, str]) -> None:
        """Creates a container and its volume, unless they are there.

        Raises:
            NotFoundError: Its image is not there.
        """
        await self._api.post("/volumes/create", {"Name": name, "Labels": dict(labels)})
        await self._make(name, body)

    async def _make(self, name: str, body: Mapping[str, Any]) -> None:
        """Creates a container, unless it is there.

        A Podman that was killed while it made one has its name in its storage, and knows no container of that
        name: what it has goes, and it is made again.
        """
        with suppress(ConflictError):
            await self._api.post("/containers/create", body, name=name)
            return
        try:
            await self._api.get(f"/containers/{name}/json")
        except NotFoundError:
            await self._api.delete(f"/containers/{name}", force=True)
            await self._api.post("/containers/create", body, name=name)

    async def report(self, container: ListedContainer) -> ContainerReport:
        """What became of a container."""
        if container.unbegun:
            return report_of(container, ContainerState.UNKNOWN)
        if container.running:
            return report_of(container, ContainerState.RUNNING)
        record = await self._exit(container.name)
        described = await self._api.get(f"/containers/{container.name}/json")
        if record is None:
            record = _out_of_memory(described)
        return report_of(container, ContainerState.ENDED, record, reason=_reason(described["State"]))

    async def lost(self, container: ListedContainer) -> bool:
        """Whether the supervisor of an ended container did not say how it ended."""
        return await self._exit(container.name) is None

    async def _exit(self, name: str) -> ExitRecord | None:
        try:
            return await self._recorded_exit(name)
        except FailedPreconditionError as failure:
            # The files are the trial's own to spoil, such as by a folder in their place.
            _log.warning("how a run ended cannot be read", container=name, reason=str(failure))
            return None

    async def _recorded_exit(self, name: str) -> ExitRecord | None:
        try:
            return exit_record(await self._api.get_archive(name, EXIT_FILE))
        except NotFoundError:
            pass
        try:
            await self._api.get_archive(name, SUPERVISOR_FILE)
        except NotFoundError:
            output = (await self._api.logs(name, lines=_LOG_LINES)).strip()
            failure = f"the supervisor of the run did not start:\n{output}"
            return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)
        return None

    async def signal(self, container: ListedContainer, name: str) -> None:
        """Sends a signal to the first process of a container; one that has ended needs none."""
        with suppress(ConflictError, NotFoundError):
            await self._api.post(f"/containers/{container.name}/kill", signal=name)

    async def kill(self, container: ListedContainer) -> None:
        """Ends a container, and waits for it; one that never began is removed.

        Raises:
            UnavailableError: It does not end, such as one that waits for a disk that does not answer.
        """
        if container.unbegun:
            await self._api.delete(f"/containers/{container.name}", force=True)
        elif container.running:
            await self.signal(container, "SIGKILL")
            try:
                await in_time(self._api.until_stopped(container.name), _KILL_SECONDS, container.name)
            except DeadlineError:
                raise UnavailableError(
                    f"container {container.name} still runs {_KILL_SECONDS:g} s after it was killed: see "
                    "what its processes wait for, such as a disk that does not answer"
                ) from None

    async def upload_orphan(
        self, container: ListedContainer, request: ContainerRequest, *, token: str, arguments: Sequence[str]
    ) -> bool:
        """Sends what an ended container left in its volume; returns whether everything has arrived."""
        name = f"{container.name}{_ORPHAN_UPLOAD}"
        if token:
            owner = owner_of(request.engine.user)
            await self._api.put_archive(container.name, VOLUME, token_file(token, owner=owner))
        network = self.prefix(container.allocation_id) if request.engine.networks else ""
        if network:
            # A clean-up of an engine removes networks in which nothing runs.
            await self.networks.make(network, request.labels)
        body = request.orphan_upload_body(container.name, network=network, arguments=list(arguments))
        return await self._completed(name, body)

    async def list_files(self, container: ListedContainer, request: ContainerRequest) -> bytes:
        """Lists the files that an ended container left in its volume; returns the tar with the list.

        Raises:
            FailedPreconditionError: They cannot be listed, because the disk is full for example.
        """
        if not await self._completed(f"{container.name}{_LISTING}", request.listing_body(container.name)):
            raise FailedPreconditionError(f"the files that {container.name} left cannot be listed")
        return await self._api.get_archive(container.name, LISTING_FILE)

    async def _completed(self, name: str, body: Mapping[str, Any]) -> bool:
        """Runs a container that works on what another left, and removes it; returns whether it succeeded."""
        # An earlier life's does what is wanted.
        await self._make(name, body)
        try:
            await self._api.post(f"/containers/{name}/start")
        except (NotFoundError, FailedPreconditionError):
            # Its network may be one that was removed: the next attempt makes another.
            await self._api.delete(f"/containers/{name}", force=True)
            raise
        await self._api.until_stopped(name)
        try:
            state = (await self._api.get(f"/containers/{name}/json"))["State"]
        except NotFoundError:
            return False
        await self._api.delete(f"/containers/{name}", force=True)
        return bool(state["ExitCode"] == 0)

    async def remove(self, allocation_id: str) -> None:
        """Removes everything of an allocation."""
        labels = self.labels(allocation_id)
        containers = await self._listed("/containers/json", labels, all=True)
        await asyncio.gather(
            *(self._api.delete(f"/containers/{container['Id']}", force=True) for container in containers)
        )
        for volume in await self._listed("/volumes", labels):
            # Of one that was half made no list tells, see `_make`.
            for name in (volume["Name"], *(f"{volume['Name']}{end}" for end in (_ORPHAN_UPLOAD, _LISTING))):
                await self._api.delete(f"/containers/{name}", force=True)
            await self._api.delete(f"/volumes/{volume['Name']}")
        for name in await self._networks(labels):
            await self.networks.remove(name)


def owner_of(user: str) -> tuple[int, int]:
    """User and group of ``uid:gid``."""
    uid, _, gid = user.partition(":")
    return int(uid), int(gid)


def _reason(state: Mapping[str, Any]) -> str:
    if state.get("OOMKilled"):
        return "the engine ended it because it used more memory than it may"
    return str(state.get("Error") or f"its first process exited with {state.get('ExitCode')}")


def _out_of_memory(described: Mapping[str, Any]) -> ExitRecord | None:
    """The end of a container that was killed for passing its memory limit, its supervisor included.

    One without a limit was killed because its machine had no memory left: it is lost.
    """
    state, limit = described["State"], (described.get("HostConfig") or {}).get("Memory")
    if not (state.get("OOMKilled") and state.get("ExitCode") == _KILLED and limit):
        return None
    return ExitRecord.out_of_memory(
        f"the memory limit of its container, {ByteSize(limit).human_readable()}",
        remedy="raise memory_per_slot of the pool",
        end_time=seconds_at(state.get("FinishedAt")),
    )
