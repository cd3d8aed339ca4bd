"""The tasks of an engine of Pods: what is not wanted any more ends, and no defect ends the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from support.backends import need_module
from support.waiting import wait_until_async

from resolute.errors import DeadlineError, FailedPreconditionError, UnavailableError
from resolute_engines.kubernetes.settings import KubernetesEngineOptions

need_module("kubernetes_asyncio", remedy="`make engines` installs it")

from kubernetes_asyncio.client import ApiClient, Configuration  # noqa: E402

from resolute_engines.environment import SupervisorTerms  # noqa: E402
from resolute_engines.kit.releases import LeftoverContainers, Releases  # noqa: E402
from resolute_engines.kubernetes import engine as kubernetes_engine  # noqa: E402
from resolute_engines.kubernetes.connection import KubernetesApi  # noqa: E402 - they want what was asked for above
from resolute_engines.kubernetes.engine import KubernetesEngine  # noqa: E402

TERMS = SupervisorTerms(outage_timeout=1.0, log_wait=600.0)


def named(prefix: str) -> list[str]:
    """The tasks of such names that live."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(prefix)]


def scenario(body: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await asyncio.wait_for(body(), 60)

    asyncio.run(whole())


def manager_of(connect: Callable[[], Awaitable[KubernetesApi]]) -> KubernetesEngine:
    options = KubernetesEngineOptions.model_validate({})
    return KubernetesEngine(connect, options=options, pools={}, terms=TERMS, cluster_id="c")


async def _never() -> KubernetesApi:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


class Silent:
    """Kubernetes as it answers nothing, or has a defect for some times and then knows of nothing."""

    def __init__(self, *, defects: int = 0, silent: bool = False) -> None:
        self.defects = defects
        self._silent = silent

    async def leftover_containers(self, allocation_id: str) -> LeftoverContainers | None:
        if self._silent:
            await asyncio.Event().wait()
        if self.defects:
            self.defects -= 1
            raise RuntimeError("a defect")
        return None

    async def kill(self, allocation_id: str) -> None:
        raise AssertionError("nothing is there")

    async def delete(self, allocation_id: str) -> None:
        raise AssertionError("nothing is there")


def test_a_watch_that_is_begun_again_ends_the_earlier() -> None:
    async def body() -> None:
        manager = manager_of(_never)

        async def watch() -> None:
            async for _ in manager.watch():
                pass

        watches = [asyncio.create_task(watch())]
        await wait_until_async(lambda: named("kubernetes-watch"))
        earlier = manager._following
        watches.append(asyncio.create_task(watch()))
        await wait_until_async(lambda: manager._following not in (earlier, None))
        assert len(named("kubernetes-watch")) == 1
        assert earlier is not None
        assert earlier.cancelled()
        await manager.close()
        assert named("kubernetes-watch") == []
        for one in watches:
            one.cancel()
        await asyncio.gather(*watches, return_exceptions=True)

    scenario(body)


def test_an_engine_that_was_closed_connects_no_more() -> None:
    async def body() -> None:
        manager = manager_of(_never)
        await manager.close()
        with pytest.raises(UnavailableError, match="is being stopped"):
            await manager.find("t.1")

    scenario(body)


def test_waiting_for_lines_that_is_given_up_leaves_no_task() -> None:
    async def body() -> None:
        releases = Releases(
            "kubernetes", Silent(silent=True), outage_timeout=1.0, log_wait=600.0, forget=lambda _: None
        )
        waiting = asyncio.create_task(releases.deliver_lines({"t.1": "", "t.2": ""}))
        await wait_until_async(lambda: len(named("kubernetes-lines-")) == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert named("kubernetes-lines-") == []

    scenario(body)


def test_a_defect_does_not_end_a_removal(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        forgotten: list[str] = []
        kubernetes = Silent(defects=2)
        releases = Releases(
            "kubernetes", kubernetes, outage_timeout=1.0, log_wait=1.0, forget=forgotten.append
        )
        releases.release("t.1")
        await wait_until_async(lambda: forgotten == ["t.1"])
        assert (await releases.unreported(), kubernetes.defects) == ([], 0)
        await releases.close()

    scenario(body)
    assert capsys.readouterr().out.count("a run cannot be removed yet") == 1, "the same again is no news"


def test_all_who_ask_meanwhile_share_one_attempt_to_connect() -> None:
    async def body() -> None:
        attempts, answer = 0, asyncio.Event()

        async def refused() -> KubernetesApi:
            nonlocal attempts
            attempts += 1
            await answer.wait()
            raise FailedPreconditionError("there are no credentials")

        manager = manager_of(refused)
        asked = [asyncio.create_task(manager.find(f"t.{number}")) for number in range(8)]
        await wait_until_async(lambda: attempts)
        asked.pop().cancel()
        answer.set()
        failures = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(failure) for failure in failures} == {UnavailableError}
        assert attempts == 1
        with pytest.raises(UnavailableError, match="no credentials"):
            await manager.find("t.1")
        assert attempts == 2
        await manager.close()

    scenario(body)


def test_credentials_that_take_long_are_waited_for_with_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_engine, "_CONNECT_SECONDS", 0.1)

    async def body() -> None:
        manager = manager_of(_never)
        with pytest.raises(DeadlineError, match="see whether the program ends that the kubeconfig names"):
            await manager.find("t.1")
        asking = asyncio.create_task(manager.find("t.1"))
        await wait_until_async(lambda: named("kubernetes-connect"))
        await manager.close()
        with pytest.raises(UnavailableError):
            await asking
        assert named("kubernetes-connect") == []

    scenario(body)


def test_a_program_for_credentials_that_does_not_end_is_started_once(tmp_path: Path) -> None:
    program, done = tmp_path / "login", tmp_path / "done"
    program.write_text(f"#!/bin/sh\nwhile [ ! -e {done} ]; do sleep 0.1; done\n")
    program.chmod(0o700)
    execute = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {"exec": execute}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))

    async def body() -> None:
        api = KubernetesApi(
            ApiClient(Configuration()), kubeconfig=str(tmp_path / "kubeconfig"), deadline_seconds=0.2
        )
        # As after an answer that its token has expired.
        for _ in range(2):
            with pytest.raises(DeadlineError):
                await api._reading.outcome()
        assert named("kubernetes-credentials") == ["kubernetes-credentials"]
        done.touch()
        await wait_until_async(lambda: not named("kubernetes-credentials"))
        await api.close()

    scenario(body)
