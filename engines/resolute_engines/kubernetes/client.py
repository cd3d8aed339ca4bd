"""Submits, lists, watches and ends groups of Pods by name. A name stands for one group, created once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from resolute.errors import (
    AlreadyExistsError,
    ConflictError,
    NotFoundError,
    PermissionDeniedError,
    QuotaError,
    ResoluteError,
    UnavailableError,
)
from resolute_engines.kubernetes import objects
from resolute_engines.kubernetes.connection import ExpiredError, KubernetesApi
from resolute_engines.kubernetes.objects import PodGroup
from resolute_engines.kubernetes.pods import GROUP_LABEL, PART_LABEL, Pod, PodState, parse_pod

_FULL = "exceeded quota"
"""How Kubernetes says that a namespace has no room for an object now."""
_PAGE = 100
"""Objects a page: what a page has is read in one go."""
_WATCH_SECONDS = 60
"""For how long one watch lasts: a connection that broke in silence is noticed soon after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A submitted group of Pods."""

    name: str
    """Its name."""
    labels: Mapping[str, str]
    """Its labels."""
    parts: int
    """The number of its Pods."""
    complete: bool
    """Whether all of its Pods were created. One that is not there any more was deleted since."""
    withdrawn: bool
    """Whether it was ended before all of it ran."""
    pods: tuple[Pod, ...]
    """The Pods that are there, by part."""

    @property
    def all_ended(self) -> bool:
        """Whether nothing of it runs, and nothing of it will."""
        ended = all(pod.state is PodState.ENDED for pod in self.pods)
        return ended and (self.complete or len(self.pods) == self.parts)


class KubernetesClient:
    """Groups of Pods in one namespace.

    Args:
        api: Makes the calls.
        namespace: Namespace of the Pods.
    """

    def __init__(self, api: KubernetesApi, *, namespace: str) -> None:
        objects.check_name(namespace)
        self._api = api
        self._core = f"/api/v1/namespaces/{namespace}"

    async def submit(self, group: PodGroup) -> Submitted:
        """Submits a group, or what is missing of it; returns it.

        Once all Pods of a group were created, none of them is created again, also when it is gone since. A
        Pod whose creation arrives late, after ``delete``, is removed by Kubernetes: what owns it is gone.

        Raises:
            UnavailableError: Kubernetes does not answer, removes a group of this name, or was asked for
                several at once: submit it again.
            QuotaError: The namespace has no room for it now, and nothing of it is left: submit it later.
            ResoluteError: Kubernetes refuses it; the message has its reason, and nothing of it is left.
        """
        try:
            return await self._submit(group)
        except ConflictError as failure:
            # Two that are created at once change the same quota: one of them is asked to try again.
            raise UnavailableError(str(failure)) from failure
        except PermissionDeniedError as failure:
            if _FULL in str(failure):
                raise QuotaError(str(failure)) from failure
            raise

    async def _submit(self, group: PodGroup) -> Submitted:
        path = f"{self._core}/services"
        try:
            service = await self._api.create(path, objects.service(group))
        except AlreadyExistsError:
            service = await self._api.get(f"{path}/{group.name}")
        if "deletionTimestamp" in service["metadata"]:
            raise UnavailableError(f"Kubernetes still removes an earlier {group.name}")
        if not _complete(service):
            try:
                await self._create_parts(group, owner=service["metadata"]["uid"])
            except (ConflictError, UnavailableError):
                raise
            except ResoluteError:
                await self.delete(group.name)
                raise
            service = await self._mark_complete(group.name)
        return await self._submitted(service)

    async def find(self, name: str) -> Submitted | None:
        """Returns the group of a name, if there is one.

        Raises:
            InvalidArgumentError: The name is not one.
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        objects.check_name(name)
        try:
            service = await self._api.get(f"{self._core}/services/{name}")
        except NotFoundError:
            return None
        return await self._submitted(service)

    async def groups(self, *, selector: str) -> Mapping[str, Mapping[str, str]]:
        """Tells every group that has such labels, such as ``resolute/cluster=a``, with its labels, by name.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        services, _ = await self._list("services", selector)
        return {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in services}

    async def watch(self, *, selector: str, known: dict[str, Pod] | None = None) -> AsyncIterator[Pod]:
        """Yields every Pod that has such labels, and again whenever it changes, until it is closed.

        One that is deleted comes a last time as ``ENDED``. The watch goes on by itself while the API server
        closes it, as API servers do every few minutes; when that fails it ends with an error.

        Args:
            selector: The labels.
            known: The Pods that an earlier watch reported, by ``uid``, which this one keeps up to date: what
                changed between the two is reported, and nothing else again.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        known, version = {} if known is None else known, ""
        while True:
            try:
                if not version:
                    manifests, version = await self._list("pods", selector)
                    for pod in _note_all(known, list(map(parse_pod, manifests))):
                        yield pod
                async for event in self._api.stream(
                    f"{self._core}/pods",
                    seconds=_WATCH_SECONDS,
                    labelSelector=selector,
                    resourceVersion=version,
                    allowWatchBookmarks="true",
                ):
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        yield _note(known, parse_pod(event["object"]), gone=event["type"] == "DELETED")
            except ExpiredError:
                # Changes were missed: what is there now tells which.
                version = ""

    async def ask(self, name: str, word: str) -> None:
        """Asks something of the Pods of a group: each sees it in the annotation ``resolute/asked``.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        objects.check_name(name)
        for pod in await self._pods(name):
            changes = {"metadata": {"annotations": {objects.ASKED: word}}}
            with suppress(NotFoundError):
                await self._api.patch(f"{self._core}/pods/{pod.name}", changes)

    async def end(self, name: str, *, grace_seconds: int, withdrawn: bool = False) -> None:
        """Ends the Pods of a group: SIGTERM, and SIGKILL after the grace. What is known of the group stays.

        Args:
            name: The group.
            grace_seconds: The grace; one second at least.
            withdrawn: Whether to note that not all of it has run.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        objects.check_name(name)
        try:
            # What a lost submission still has to create is not wanted any more.
            await self._mark_complete(name, withdrawn=withdrawn)
        except NotFoundError:
            return
        await self._delete_pods(name, grace_seconds)

    async def withdraw(self, name: str, *, grace_seconds: int) -> None:
        """Ends those Pods of a group that do not run yet, and notes that not all of it has run.

        Args:
            name: The group.
            grace_seconds: The grace of one that begins at this moment.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        objects.check_name(name)
        with suppress(NotFoundError):
            await self._mark_complete(name, withdrawn=True)
        waiting = [str(pod.part) for pod in await self._pods(name) if pod.waits]
        if waiting:
            await self._delete_pods(name, grace_seconds, among=f",{PART_LABEL} in ({','.join(waiting)})")

    async def delete(self, name: str) -> None:
        """Ends a group at once and removes all of it.

        Raises:
            ResoluteError: Kubernetes does not answer, or refuses.
        """
        objects.check_name(name)
        # First the owner: what is still being created then has no owner, and is removed too.
        await self._api.delete(f"{self._core}/services/{name}", {"propagationPolicy": "Background"})
        await self._delete_pods(name, 1)

    async def _delete_pods(self, name: str, grace_seconds: int, *, among: str = "") -> None:
        # With a grace of zero Kubernetes forgets Pods that may run on.
        options = {"gracePeriodSeconds": max(1, grace_seconds)}
        await self._api.delete(f"{self._core}/pods", options, labelSelector=f"{GROUP_LABEL}={name}{among}")

    async def _create_parts(self, group: PodGroup, *, owner: str) -> None:
        if group.files:
            await self._create_once("secrets", objects.secret(group, owner=owner))
        for part in range(len(group.pods)):
            await self._create_once("pods", objects.pod(group, part, owner=owner))
        for pod in await self._pods(group.name):
            if pod.owner != owner:
                raise UnavailableError(f"Kubernetes still removes an earlier {pod.name}")

    async def _create_once(self, kind: str, manifest: Mapping[str, Any]) -> None:
        try:
            await self._api.create(f"{self._core}/{kind}", manifest)
        except AlreadyExistsError:
            return

    async def _mark_complete(self, name: str, *, withdrawn: bool = False) -> dict[str, Any]:
        notes = [objects.COMPLETE, *([objects.WITHDRAWN] if withdrawn else [])]
        changes = {"metadata": {"annotations": dict.fromkeys(notes, "true")}}
        return await self._api.patch(f"{self._core}/services/{name}", changes)

    async def _submitted(self, service: Mapping[str, Any]) -> Submitted:
        metadata = service["metadata"]
        name, owner = metadata["name"], metadata["uid"]
        return Submitted(
            name=name,
            labels=metadata.get("labels") or {},
            parts=int((metadata.get("annotations") or {}).get(objects.PARTS, 0)),
            complete=_complete(service),
            withdrawn=objects.WITHDRAWN in (metadata.get("annotations") or {}),
            pods=tuple(pod for pod in await self._pods(name) if pod.owner == owner),
        )

    async def _pods(self, name: str) -> tuple[Pod, ...]:
        manifests, _ = await self._list("pods", f"{GROUP_LABEL}={name}")
        return tuple(sorted(map(parse_pod, manifests), key=lambda pod: pod.part))

    async def _list(self, kind: str, selector: str) -> tuple[list[dict[str, Any]], str]:
        """Reads every object that the labels select, and the version of that state."""
        path, items, go_on = f"{self._core}/{kind}", list[dict[str, Any]](), ""
        while True:
            query = {"labelSelector": selector, "limit": str(_PAGE)}
            try:
                page = await self._api.get(path, **query, **({"continue": go_on} if go_on else {}))
            except ExpiredError:
                items, go_on = [], ""
                continue
            items += page["items"]
            go_on = page["metadata"].get("continue") or ""
            if not go_on:
                return items, page["metadata"]["resourceVersion"]


def _complete(service: Mapping[str, Any]) -> bool:
    return objects.COMPLETE in (service["metadata"].get("annotations") or {})


def _note_all(known: dict[str, Pod], there: Sequence[Pod]) -> Iterator[Pod]:
    """Notes what is there now; yields what is new, or other, or gone."""
    uids = {pod.uid for pod in there}
    for pod in [pod for uid, pod in known.items() if uid not in uids]:
        yield _note(known, pod, gone=True)
    for pod in there:
        if known.get(pod.uid) != pod:
            yield _note(known, pod, gone=False)


def _note(known: dict[str, Pod], pod: Pod, *, gone: bool) -> Pod:
    if not gone:
        known[pod.uid] = pod
        return pod
    known.pop(pod.uid, None)
    if pod.state is PodState.ENDED:
        return pod
    return replace(
        pod,
        state=PodState.ENDED,
        reason=pod.reason or "Deleted: its object is gone",
        leaving=False,
        disrupted=True,
    )
