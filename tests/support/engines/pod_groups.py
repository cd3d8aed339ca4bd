"""Groups of Pods of a test's own on a real Kubernetes, for the tests of its client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from support.backends import need_module
from support.daemons.kubernetes import HOST_POD

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from resolute_engines.kubernetes.client import KubernetesClient, Submitted  # noqa: E402 - wants what was asked for above
from resolute_engines.kubernetes.connection import KubernetesApi  # noqa: E402
from resolute_engines.kubernetes.objects import PodGroup  # noqa: E402
from resolute_engines.kubernetes.pods import CONTAINER, GROUP_LABEL, Pod, PodState  # noqa: E402

T = TypeVar("T")
WAIT_SECONDS = 120.0
PODS = "/api/v1/namespaces/default/pods"
WAITS = ("sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.1; done")


@dataclass(frozen=True)
class Place:
    """A name of the test's own on the cluster."""

    kubeconfig: str
    name: str

    def run(self, work: Callable[[KubernetesClient, KubernetesApi], Awaitable[T]]) -> T:
        """Does work with a client, and closes its connections."""

        async def connected() -> T:
            api = await KubernetesApi.connect(kubeconfig=self.kubeconfig, deadline_seconds=60.0)
            try:
                return await work(KubernetesClient(api, namespace="default"), api)
            finally:
                await api.close()

        return asyncio.run(connected())

    def remove(self) -> None:
        """Removes the group, and waits until nothing of it is left."""

        async def removed(client: KubernetesClient, api: KubernetesApi) -> None:
            await client.delete(self.name)
            await until(lambda: count(api, self.name), lambda left: left == 0, what="the end of its Pods")

        self.run(removed)

    def group(self, *commands: tuple[str, ...], **changes: Any) -> PodGroup:
        """A group of which each Pod runs one of the commands."""
        return PodGroup(name=self.name, pods=tuple(map(host_pod, commands)), **changes)


def host_pod(command: tuple[str, ...], **of_container: Any) -> dict[str, Any]:
    """A Pod that runs a program of this machine."""
    pod = deepcopy(dict(HOST_POD))
    pod["spec"]["containers"][0] |= {"name": CONTAINER, "command": list(command), **of_container}
    return pod


async def until(
    look: Callable[[], Awaitable[T]],
    condition: Callable[[T], bool],
    *,
    what: str,
    seconds: float = WAIT_SECONDS,
) -> T:
    """Looks until something is as wanted."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not condition(seen := await look()):
        assert loop.time() < deadline, f"waited in vain for {what}: {seen}"
        await asyncio.sleep(0.1)
    return seen


async def found(client: KubernetesClient, name: str) -> Submitted:
    """The group, which is there."""
    submitted = await client.find(name)
    assert submitted is not None
    return submitted


async def in_state(client: KubernetesClient, name: str, state: PodState) -> tuple[Pod, ...]:
    """Waits until every Pod of a group is in a state."""
    done = await until(
        lambda: found(client, name),
        lambda group: bool(group.pods) and all(pod.state is state for pod in group.pods),
        what=state.value,
    )
    return done.pods


async def count(api: KubernetesApi, name: str) -> int:
    """The number of Pods of a group."""
    return len((await api.get(PODS, labelSelector=f"{GROUP_LABEL}={name}"))["items"])


async def collect(watching: AsyncIterator[Pod], seen: list[Pod]) -> None:
    """Collects what a watch tells."""
    async for pod in watching:
        seen.append(pod)  # noqa: PERF401 - others look at it meanwhile


async def look_at(seen: list[Pod]) -> list[Pod]:
    """What was collected, for ``until``."""
    return seen


def is_end(pods: list[Pod]) -> bool:
    """Whether the last that was told is an end."""
    # The code of one that was deleted is not asked for: kubelets before 1.22 forget it.
    return bool(pods) and pods[-1].state is PodState.ENDED
