"""What is told of Pods: why they wait, how they ended, and for whose sake."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from support.engines.pod_groups import (
    PODS,
    WAITS,
    Place,
    collect,
    found,
    host_pod,
    in_state,
    is_end,
    look_at,
    until,
)

from resolute.contracts.run.termination_message import BEGAN
from resolute_engines.kubernetes.client import KubernetesClient
from resolute_engines.kubernetes.connection import KubernetesApi
from resolute_engines.kubernetes.objects import PodGroup
from resolute_engines.kubernetes.pods import GROUP_LABEL, Pod, PodState
from resolute_engines.kubernetes.states import report_of


def test_pod_that_fits_nowhere_waits_with_the_reason_of_kubernetes(place: Place) -> None:
    wants = host_pod(WAITS, resources={"limits": {"nvidia.com/gpu": "8"}})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(PodGroup(name=place.name, pods=(wants,)))
        group = await until(
            lambda: found(client, place.name), lambda group: bool(group.pods[0].reason), what="a reason"
        )
        (pod,) = group.pods
        assert pod.state is PodState.QUEUED
        assert pod.reason.startswith("Unschedulable: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
        assert not pod.blocked

    place.run(work)


@pytest.mark.parametrize(
    ("image", "reason"),
    [("localhost/none:1", "ErrImageNeverPull"), ("No/Name", "InvalidImageName")],
)
def test_image_that_cannot_be_had_is_the_reason(place: Place, image: str, reason: str) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(PodGroup(name=place.name, pods=(host_pod(WAITS, image=image),)))
        group = await until(
            lambda: found(client, place.name), lambda group: group.pods[0].blocked, what="the reason"
        )
        assert group.pods[0].state is PodState.STARTING
        assert group.pods[0].reason.startswith(f"{reason}: ")
        assert image in group.pods[0].reason

    place.run(work)


def test_image_of_a_registry_that_does_not_answer_is_the_reason(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        image = "registry.invalid/team/image:1"
        pod = host_pod(WAITS, image=image, imagePullPolicy="IfNotPresent")
        await client.submit(PodGroup(name=place.name, pods=(pod,)))
        group = await until(
            lambda: found(client, place.name), lambda group: group.pods[0].blocked, what="the reason"
        )
        assert group.pods[0].reason.startswith(("ErrImagePull: ", "ImagePullBackOff: "))
        assert image in group.pods[0].reason

    place.run(work)


def test_container_killed_for_its_memory_says_so(place: Place) -> None:
    eats = ("python3", "-c", "b'x' * (1 << 30)")
    pod = host_pod(eats, resources={"limits": {"memory": "64Mi"}})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(PodGroup(name=place.name, pods=(pod,)))
        (ended,) = await in_state(client, place.name, PodState.ENDED)
        assert (ended.reason, ended.exit_code, ended.disrupted) == ("OOMKilled", 137, False)

    place.run(work)


def test_container_killed_for_its_memory_with_its_supervisor_has_failed(place: Place) -> None:
    # As where the kernel kills all of a container: what its first process has said last is that it began.
    script = f"echo '{BEGAN}' > /dev/termination-log; exec python3 -c \"b'x' * (1 << 30)\""
    pod = host_pod(("sh", "-c", script), resources={"limits": {"memory": "64Mi"}})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(PodGroup(name=place.name, pods=(pod,)))
        (ended,) = await in_state(client, place.name, PodState.ENDED)
        record = report_of(ended).exit
        assert record is not None
        assert record.exit_code == 137
        assert "64Mi; raise memory_per_slot of the pool" in record.failure

    place.run(work)


def test_evicted_pod_is_told_from_one_that_failed(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(WAITS))
        (pod,) = await in_state(client, place.name, PodState.RUNNING)
        seen: list[Pod] = []
        following = asyncio.create_task(collect(client.watch(selector=f"{GROUP_LABEL}={place.name}"), seen))
        try:
            await api.create(f"{PODS}/{pod.name}/eviction", {"metadata": {"name": pod.name}})
            await until(lambda: look_at(seen), is_end, what="the end")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert any(each.leaving and each.state is PodState.RUNNING for each in seen)
        assert seen[-1].disrupted

    place.run(work)


def test_pod_that_makes_room_for_an_urgent_one_is_disrupted(place: Place) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    urgent = replace(place, name=f"{place.name}-u")

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        node = (await api.get("/api/v1/nodes"))["items"][0]
        large = {"limits": {"cpu": str(int(node["status"]["allocatable"]["cpu"]) * 0.9)}}
        await api.create(classes, {"metadata": {"name": urgent.name}, "value": 1000})
        try:
            await client.submit(PodGroup(name=place.name, pods=(host_pod(WAITS, resources=large),)))
            await in_state(client, place.name, PodState.RUNNING)
            seen: list[Pod] = []
            following = asyncio.create_task(
                collect(client.watch(selector=f"{GROUP_LABEL}={place.name}"), seen)
            )
            pod = host_pod(WAITS, resources=large)
            pod["spec"]["priorityClassName"] = urgent.name
            await client.submit(PodGroup(name=urgent.name, pods=(pod,)))
            try:
                await in_state(client, urgent.name, PodState.RUNNING)
                await until(lambda: look_at(seen), is_end, what="the end")
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            assert seen[-1].disrupted
        finally:
            await client.delete(urgent.name)
            await api.delete(f"{classes}/{urgent.name}", {})

    place.run(work)
