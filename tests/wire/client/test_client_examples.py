"""The examples of the client in the reference run, one by one, on all services in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from support.clusters.tenants import tenants
from support.logs import plain_logs
from support.pages.reference_examples import CLIENT, run_examples

from resolute import client
from resolute_serving.context import Role, User


@pytest.fixture
def quiet() -> Iterator[None]:
    """Services log nothing: they would write among what the examples print."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    plain_logs()


def test_the_examples_of_the_client_run_on_a_cluster_with_a_trial(
    quiet: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del quiet
    monkeypatch.chdir(tmp_path)

    async def scenario() -> tuple[int, str]:
        async with tenants(tmp_path / "services") as platform:
            token = platform.running.signer.user(User("admin", Role.ADMIN, 1), ttl=3600.0)
            monkeypatch.setenv("RESOLUTE_HOME", str(tmp_path))
            monkeypatch.setenv("RESOLUTE_MASTER", platform.running.address)
            monkeypatch.setenv("RESOLUTE_TOKEN", token)
            return await asyncio.to_thread(run_examples, CLIENT, between=client.logout)

    count, failures = asyncio.run(scenario())
    assert failures == ""
    assert count >= 40
