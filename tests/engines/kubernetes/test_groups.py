"""What the client of Kubernetes promises of groups: one name is one group, once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from support.daemons.kubernetes import KubernetesCluster
from support.engines.pod_groups import (
    PODS,
    WAITS,
    Place,
    count,
    host_pod,
    in_state,
    until,
)

from resolute.errors import (
    DeadlineError,
    InvalidArgumentError,
    QuotaError,
    UnavailableError,
)
from resolute_engines.kubernetes import objects
from resolute_engines.kubernetes.client import KubernetesClient
from resolute_engines.kubernetes.connection import KubernetesApi, _refusal
from resolute_engines.kubernetes.objects import FILES_VOLUME, PodGroup
from resolute_engines.kubernetes.pods import GROUP_LABEL, PodState


def test_one_name_is_one_group(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        first = await client.submit(place.group(WAITS, WAITS))
        again = await client.submit(place.group(WAITS, WAITS))
        assert [pod.uid for pod in again.pods] == [pod.uid for pod in first.pods]
        assert [(pod.name, pod.part) for pod in again.pods] == [
            (f"{place.name}-0", 0),
            (f"{place.name}-1", 1),
        ]
        assert (again.parts, again.complete) == (2, True)

    place.run(work)


def test_changes_of_one_object_at_once_are_all_made(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(WAITS))
        path = f"/api/v1/namespaces/default/services/{place.name}"
        names = {f"note-{number}" for number in range(4)}
        changes = [{"metadata": {"annotations": {name: "made"}}} for name in names]
        await asyncio.gather(*(api.patch(path, change) for change in changes))
        assert names <= set((await api.get(path))["metadata"]["annotations"])

    place.run(work)


class LossyApi(KubernetesApi):
    """Loses one answer: what was asked for happened, and nobody hears of it."""

    lost_at = 0
    _calls = 0

    async def _answer(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        answer = await super()._answer(*arguments, **named)
        self._calls += 1
        if self._calls == self.lost_at + 1:
            raise DeadlineError("lost")
        return answer


# Service, Secret, two Pods, a look at them, and the mark that they are all there.
@pytest.mark.parametrize("lost_at", range(6))
def test_submission_of_which_an_answer_was_lost_goes_on(place: Place, lost_at: int) -> None:
    async def work(_: KubernetesClient, api: KubernetesApi) -> None:
        lossy = LossyApi(api._client)
        lossy.lost_at = lost_at
        client = KubernetesClient(lossy, namespace="default")
        group = place.group(WAITS, WAITS, files={"order": b"x"})
        with pytest.raises(DeadlineError):
            await client.submit(group)
        submitted = await client.submit(group)
        assert [pod.part for pod in submitted.pods] == [0, 1]
        assert submitted.complete

    place.run(work)


class BusyQuotaApi(KubernetesApi):
    """Answers the first creation of a second Pod as where others change the same quota at that moment."""

    _refused = False

    async def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        if not self._refused and str(manifest["metadata"].get("name", "")).endswith("-1"):
            self._refused = True
            raise _refusal(
                "POST", path, 409, b"", {"reason": "Conflict", "message": "Operation cannot be fulfilled"}
            )
        return await super().create(path, manifest)


def test_submission_that_meets_others_at_a_quota_is_tried_again(place: Place) -> None:
    async def work(_: KubernetesClient, api: KubernetesApi) -> None:
        client = KubernetesClient(BusyQuotaApi(api._client), namespace="default")
        group = place.group(WAITS, WAITS)
        with pytest.raises(UnavailableError, match="cannot be fulfilled"):
            await client.submit(group)
        found = await client.find(place.name)
        assert found is not None
        assert [pod.part for pod in found.pods] == [0]
        submitted = await client.submit(group)
        assert [pod.part for pod in submitted.pods] == [0, 1]
        assert submitted.pods[0].uid == found.pods[0].uid

    place.run(work)


@pytest.mark.parametrize(("kind", "room", "more"), [("pods", "1", "1"), ("services", "0", "1")])
def test_group_for_which_a_namespace_has_no_room_is_turned_away_and_leaves_nothing(
    kubernetes: KubernetesCluster, place: Place, kind: str, room: str, more: str
) -> None:
    path = f"/api/v1/namespaces/{place.name}/resourcequotas"
    kubernetes.call("/api/v1/namespaces", {"metadata": {"name": place.name}})
    quota = {"metadata": {"name": "one"}, "spec": {"hard": {kind: room}}}

    async def work(_: KubernetesClient, api: KubernetesApi) -> None:
        client = KubernetesClient(api, namespace=place.name)
        await api.create(path, quota)

        async def counted() -> bool:
            return bool((await api.get(f"{path}/one")).get("status", {}).get("hard"))

        async def gone() -> bool:
            return await client.find(place.name) is None

        await until(counted, bool, what="the quota to be counted")
        with pytest.raises(QuotaError, match="exceeded quota: one"):
            await client.submit(place.group(WAITS, WAITS))
        await until(gone, bool, what="the first Pod to be removed")
        await api.patch(f"{path}/one", {"spec": {"hard": {kind: more}}})

        async def taken() -> bool:
            try:
                await client.submit(place.group(WAITS))
            except (QuotaError, UnavailableError):
                return False
            return True

        await until(taken, bool, what="room for one Pod")
        await client.delete(place.name)
        await until(gone, bool, what="the Pod to be removed")

    place.run(work)


def test_parts_reach_each_other_by_name_and_read_their_files(place: Place) -> None:
    serve = "import socket; s = socket.create_server(('', 4000)); c, _ = s.accept(); exit(int(c.recv(9)))"
    call = (
        "import pathlib, socket, time\n"
        "while True:\n"
        "    try:\n"
        f"        c = socket.create_connection(('rank-0.{place.name}', 4000)); break\n"
        "    except OSError:\n"
        "        time.sleep(0.1)\n"
        "c.sendall(pathlib.Path('/order/code').read_bytes()); c.close(); exit(4)\n"
    )
    group = place.group(("python3", "-c", serve), ("python3", "-c", call), files={"code": b"3"})
    mount = {"name": FILES_VOLUME, "mountPath": "/order", "readOnly": True}
    group.pods[1]["spec"]["containers"][0]["volumeMounts"] += [mount]

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(group)
        pods = await in_state(client, place.name, PodState.ENDED)
        assert [(pod.exit_code, pod.reason, pod.disrupted) for pod in pods] == [
            (3, "", False),
            (4, "", False),
        ]

    place.run(work)


def test_refused_group_leaves_nothing(place: Place) -> None:
    wrong = host_pod(WAITS, resources={"limits": {"memory": "much"}})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        with pytest.raises(InvalidArgumentError, match="quantities must match"):
            await client.submit(PodGroup(name=place.name, pods=(host_pod(WAITS), wrong)))
        assert await client.find(place.name) is None
        await until(lambda: count(api, place.name), lambda count: count == 0, what="the end of the first Pod")

    place.run(work)


def test_ended_group_stays_known_and_is_not_started_again(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(WAITS))
        await in_state(client, place.name, PodState.RUNNING)
        await client.end(place.name, grace_seconds=60)
        await until(lambda: count(api, place.name), lambda count: count == 0, what="the end")
        again = await client.submit(place.group(WAITS))
        assert (again.complete, again.parts, again.pods) == (True, 1, ())
        assert place.name in await client.groups(selector=f"{GROUP_LABEL}={place.name}")
        await client.delete(place.name)
        assert await client.find(place.name) is None

    place.run(work)


def test_pod_that_arrives_after_its_group_was_deleted_is_removed(place: Place) -> None:
    group = place.group(WAITS)

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        service = await api.create("/api/v1/namespaces/default/services", objects.service(group))
        await client.delete(place.name)
        await api.create(PODS, objects.pod(group, 0, owner=service["metadata"]["uid"]))
        await until(lambda: count(api, place.name), lambda count: count == 0, what="its removal")

    place.run(work)
