"""A watch over Pods misses nothing, also where the API server has forgotten what it goes on from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from support.daemons.kubernetes import KubernetesCluster
from support.engines.pod_groups import (
    PODS,
    WAITS,
    Place,
    collect,
    count,
    in_state,
    is_end,
    look_at,
    until,
)

from resolute_engines.kubernetes.client import KubernetesClient
from resolute_engines.kubernetes.connection import ExpiredError, KubernetesApi
from resolute_engines.kubernetes.pods import GROUP_LABEL, Pod, PodState


def test_watch_tells_of_starts_and_of_the_end_with_its_code(place: Place) -> None:
    group = place.group(("sh", "-c", "exit 6"), labels={"resolute/cluster": place.name})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        seen: list[Pod] = []
        watching = client.watch(selector=f"resolute/cluster={place.name}")
        following = asyncio.create_task(collect(watching, seen))
        await client.submit(group)
        await in_state(client, place.name, PodState.ENDED)
        await client.delete(place.name)
        try:
            await until(lambda: look_at(seen), is_end, what="the end")
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert seen[-1].exit_code == 6
        states = list(dict.fromkeys(pod.state for pod in seen))
        assert (states[0], states[-1]) in {
            (PodState.QUEUED, PodState.ENDED),
            (PodState.STARTING, PodState.ENDED),
        }

    place.run(work)


class ForgetfulApi(KubernetesApi):
    """Forgets the version that its first watch begins at, after something has happened."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def stream(self, path: str, *, seconds: int, **query: str) -> AsyncIterator[dict[str, Any]]:
        if self.meanwhile:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
            raise ExpiredError("too old")
        async for event in super().stream(path, seconds=seconds, **query):
            yield event


def test_watch_of_which_the_version_expired_misses_no_end(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        async def deleted() -> None:
            await client.end(place.name, grace_seconds=1)
            await until(lambda: count(api, place.name), lambda count: count == 0, what="the end")

        await client.submit(place.group(WAITS))
        await in_state(client, place.name, PodState.RUNNING)
        forgetful = ForgetfulApi(api._client)
        forgetful.meanwhile = deleted
        watching = KubernetesClient(forgetful, namespace="default").watch(
            selector=f"{GROUP_LABEL}={place.name}"
        )
        assert (await anext(watching)).state is PodState.RUNNING
        last = await anext(watching)
        assert (last.state, last.exit_code, last.disrupted) == (PodState.ENDED, None, True)
        assert last.reason == "Deleted: its object is gone"
        await watching.aclose()  # type: ignore[attr-defined]  # it is a generator

    place.run(work)


def test_forgotten_versions_are_expired(place: Place, kubernetes: KubernetesCluster) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(WAITS, WAITS))
        selected = f"{GROUP_LABEL}={place.name}"
        first = (await api.get(PODS, labelSelector=selected, limit="1"))["metadata"]
        await in_state(client, place.name, PodState.RUNNING)
        now = (await api.get(PODS))["metadata"]["resourceVersion"]
        kubernetes.forget_versions(now)
        with pytest.raises(ExpiredError, match="is too old"):
            async for _ in api.stream(PODS, seconds=60, resourceVersion=first["resourceVersion"]):
                pass
        with pytest.raises(ExpiredError):
            await api.get(PODS, **{"labelSelector": selected, "limit": "1", "continue": first["continue"]})

    place.run(work)
