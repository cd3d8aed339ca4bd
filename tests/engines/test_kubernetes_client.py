"""What the client of Kubernetes promises, against a real Kubernetes of one node."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml
from support.backends import need_module
from support.kubernetes import HOST_POD, UNBOUND_TOKEN, KubernetesCluster

from resolute.errors import (
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnavailableError,
)

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from resolute_experiments.resources.kubernetes import objects  # noqa: E402 - wants what was asked for above
from resolute_experiments.resources.kubernetes.client import KubernetesClient, Submitted  # noqa: E402
from resolute_experiments.resources.kubernetes.connection import ExpiredError, KubernetesApi  # noqa: E402
from resolute_experiments.resources.kubernetes.objects import FILES_VOLUME, PodGroup  # noqa: E402
from resolute_experiments.resources.kubernetes.pods import CONTAINER, GROUP_LABEL, Pod, PodState  # noqa: E402

T = TypeVar("T")
DOCS = Path(__file__).parents[2] / "docs/engines.md"
_WAIT_SECONDS = 120.0
_PODS = "/api/v1/namespaces/default/pods"
_WAITS = ("sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.1; done")


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

    def group(self, *commands: tuple[str, ...], **changes: Any) -> PodGroup:
        """A group of which each Pod runs one of the commands."""
        return PodGroup(name=self.name, pods=tuple(map(host_pod, commands)), **changes)


@pytest.fixture
def place(kubernetes: KubernetesCluster) -> Iterator[Place]:
    """A fresh name, of which nothing is left after the test."""
    place = Place(kubernetes.kubeconfig, f"run-{uuid.uuid4().hex[:12]}")
    yield place

    async def removed(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.delete(place.name)
        await until(lambda: _count(api, place.name), lambda count: count == 0, what="the end of its Pods")

    place.run(removed)


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
    seconds: float = _WAIT_SECONDS,
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


async def _count(api: KubernetesApi, name: str) -> int:
    return len((await api.get(_PODS, labelSelector=f"{GROUP_LABEL}={name}"))["items"])


def test_one_name_is_one_group(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        first = await client.submit(place.group(_WAITS, _WAITS))
        again = await client.submit(place.group(_WAITS, _WAITS))
        assert [pod.uid for pod in again.pods] == [pod.uid for pod in first.pods]
        assert [(pod.name, pod.part) for pod in again.pods] == [
            (f"{place.name}-0", 0),
            (f"{place.name}-1", 1),
        ]
        assert (again.parts, again.complete) == (2, True)

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
        group = place.group(_WAITS, _WAITS, files={"order": b"x"})
        with pytest.raises(DeadlineError):
            await client.submit(group)
        submitted = await client.submit(group)
        assert [pod.part for pod in submitted.pods] == [0, 1]
        assert submitted.complete

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


def test_pod_that_fits_nowhere_waits_with_the_reason_of_kubernetes(place: Place) -> None:
    wants = host_pod(_WAITS, resources={"limits": {"nvidia.com/gpu": "8"}})

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
        await client.submit(PodGroup(name=place.name, pods=(host_pod(_WAITS, image=image),)))
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
        pod = host_pod(_WAITS, image=image, imagePullPolicy="IfNotPresent")
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


def test_refused_group_leaves_nothing(place: Place) -> None:
    wrong = host_pod(_WAITS, resources={"limits": {"memory": "much"}})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        with pytest.raises(InvalidArgumentError, match="quantities must match"):
            await client.submit(PodGroup(name=place.name, pods=(host_pod(_WAITS), wrong)))
        assert await client.find(place.name) is None
        await until(
            lambda: _count(api, place.name), lambda count: count == 0, what="the end of the first Pod"
        )

    place.run(work)


def test_ended_group_stays_known_and_is_not_started_again(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(_WAITS))
        await in_state(client, place.name, PodState.RUNNING)
        await client.end(place.name, grace_seconds=60)
        await until(lambda: _count(api, place.name), lambda count: count == 0, what="the end")
        again = await client.submit(place.group(_WAITS))
        assert (again.complete, again.parts, again.pods) == (True, 1, ())
        assert place.name in await client.groups(selector=f"{GROUP_LABEL}={place.name}")
        await client.delete(place.name)
        assert await client.find(place.name) is None

    place.run(work)


def test_pod_that_arrives_after_its_group_was_deleted_is_removed(place: Place) -> None:
    group = place.group(_WAITS)

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        service = await api.create("/api/v1/namespaces/default/services", objects.service(group))
        await client.delete(place.name)
        await api.create(_PODS, objects.pod(group, 0, owner=service["metadata"]["uid"]))
        await until(lambda: _count(api, place.name), lambda count: count == 0, what="its removal")

    place.run(work)


def test_watch_tells_of_starts_and_of_the_end_with_its_code(place: Place) -> None:
    group = place.group(("sh", "-c", "exit 6"), labels={"resolute/cluster": place.name})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        seen: list[Pod] = []
        watching = client.watch(selector=f"resolute/cluster={place.name}")
        following = asyncio.create_task(_collect(watching, seen))
        await client.submit(group)
        await in_state(client, place.name, PodState.ENDED)
        await client.delete(place.name)
        try:
            await until(lambda: _seen(seen), _is_end, what="the end")
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
            await until(lambda: _count(api, place.name), lambda count: count == 0, what="the end")

        await client.submit(place.group(_WAITS))
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
        await client.submit(place.group(_WAITS, _WAITS))
        selected = f"{GROUP_LABEL}={place.name}"
        first = (await api.get(_PODS, labelSelector=selected, limit="1"))["metadata"]
        await in_state(client, place.name, PodState.RUNNING)
        now = (await api.get(_PODS))["metadata"]["resourceVersion"]
        kubernetes.forget_versions(now)
        with pytest.raises(ExpiredError, match="is too old"):
            async for _ in api.stream(_PODS, seconds=60, resourceVersion=first["resourceVersion"]):
                pass
        with pytest.raises(ExpiredError):
            await api.get(_PODS, **{"labelSelector": selected, "limit": "1", "continue": first["continue"]})

    place.run(work)


def test_evicted_pod_is_told_from_one_that_failed(place: Place) -> None:
    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(_WAITS))
        (pod,) = await in_state(client, place.name, PodState.RUNNING)
        seen: list[Pod] = []
        following = asyncio.create_task(_collect(client.watch(selector=f"{GROUP_LABEL}={place.name}"), seen))
        try:
            await api.create(f"{_PODS}/{pod.name}/eviction", {"metadata": {"name": pod.name}})
            await until(lambda: _seen(seen), _is_end, what="the end")
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
            await client.submit(PodGroup(name=place.name, pods=(host_pod(_WAITS, resources=large),)))
            await in_state(client, place.name, PodState.RUNNING)
            seen: list[Pod] = []
            following = asyncio.create_task(
                _collect(client.watch(selector=f"{GROUP_LABEL}={place.name}"), seen)
            )
            pod = host_pod(_WAITS, resources=large)
            pod["spec"]["priorityClassName"] = urgent.name
            await client.submit(PodGroup(name=urgent.name, pods=(pod,)))
            try:
                await in_state(client, urgent.name, PodState.RUNNING)
                await until(lambda: _seen(seen), _is_end, what="the end")
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            assert seen[-1].disrupted
        finally:
            await client.delete(urgent.name)
            await api.delete(f"{classes}/{urgent.name}", {})

    place.run(work)


def test_refusals_have_the_reason_of_kubernetes(place: Place, tmp_path: Path) -> None:
    stranger = replace(place, kubeconfig=_with_token(place, tmp_path, UNBOUND_TOKEN))
    unknown = replace(place, kubeconfig=_with_token(place, tmp_path, "none"))

    async def submit(client: KubernetesClient, api: KubernetesApi) -> None:
        await client.submit(place.group(_WAITS))

    with pytest.raises(PermissionDeniedError, match='User "alice" cannot create resource "services"'):
        stranger.run(submit)
    with pytest.raises(UnauthenticatedError, match="Unauthorized"):
        unknown.run(submit)


def test_rights_that_are_documented_are_enough(place: Place, tmp_path: Path) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    (said,) = [text for text in DOCS.read_text().split("```yaml\n") if "kind: Role" in text]
    rules = yaml.safe_load(said.split("```")[0])["rules"]
    binding = {
        "metadata": {"name": place.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": place.name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    }

    async def bind(client: KubernetesClient, api: KubernetesApi) -> None:
        await api.create(f"{roles}/roles", {"metadata": {"name": place.name}, "rules": rules})
        await api.create(f"{roles}/rolebindings", binding)

    async def unbind(client: KubernetesClient, api: KubernetesApi) -> None:
        await api.delete(f"{roles}/rolebindings/{place.name}", {})
        await api.delete(f"{roles}/roles/{place.name}", {})

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        async def bound() -> bool:
            try:
                await client.find(place.name)
            except PermissionDeniedError:
                return False
            return True

        # The API server's authorizer hears of roles a moment later.
        await until(bound, bool, what="the role")
        await client.submit(place.group(_WAITS, _WAITS, files={"order": b"x"}))
        watching = client.watch(selector=f"{GROUP_LABEL}={place.name}")
        assert (await anext(watching)).group == place.name
        await watching.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert list(await client.groups(selector=f"{GROUP_LABEL}={place.name}")) == [place.name]
        await client.ask(place.name, "stop")
        await client.end(place.name, grace_seconds=1)
        await client.delete(place.name)

    place.run(bind)
    try:
        replace(place, kubeconfig=_with_token(place, tmp_path, UNBOUND_TOKEN)).run(work)
    finally:
        place.run(unbind)


def test_token_that_was_replaced_in_its_file_is_read_again(place: Place, tmp_path: Path) -> None:
    kubeconfig = _with_token(place, tmp_path, "old")

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        _with_token(place, tmp_path, "admin-token")
        assert await client.find(place.name) is None

    replace(place, kubeconfig=kubeconfig).run(work)


def test_server_that_is_away_is_unavailable(place: Place, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(place.kubeconfig).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    path = tmp_path / "away"
    path.write_text(yaml.safe_dump(config))

    async def work(client: KubernetesClient, api: KubernetesApi) -> None:
        with pytest.raises(UnavailableError, match="cannot be reached"):
            await client.find(place.name)

    replace(place, kubeconfig=str(path)).run(work)
    with pytest.raises(FailedPreconditionError, match="credentials of Kubernetes cannot be read"):
        replace(place, kubeconfig=str(tmp_path / "none")).run(work)


def _with_token(place: Place, directory: Path, token: str) -> str:
    config: Mapping[str, Any] = yaml.safe_load(Path(place.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": token}
    path = directory / f"kubeconfig-{'of-alice' if token == UNBOUND_TOKEN else 'x'}"
    path.write_text(yaml.safe_dump(dict(config)))
    return str(path)


async def _collect(watching: AsyncIterator[Pod], seen: list[Pod]) -> None:
    async for pod in watching:
        seen.append(pod)  # noqa: PERF401 - others look at it meanwhile


async def _seen(seen: list[Pod]) -> list[Pod]:
    return seen


def _is_end(pods: list[Pod]) -> bool:
    # The code of one that was deleted is not asked for: kubelets before 1.22 forget it.
    return bool(pods) and pods[-1].state is PodState.ENDED
