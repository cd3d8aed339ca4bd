"""The experiments service alone, with an admin who calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from support.clocks import OffsetClock
from support.services.access import Scenario, calls
from support.services.in_process import serving

from resolute_experiments.blueprint import BLUEPRINT
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.context import Role


@pytest.fixture
def token_clock() -> OffsetClock:
    """Tells the server when tokens expire."""
    return OffsetClock()


@pytest.fixture
def play(tmp_path: Path, database_url: str, token_clock: OffsetClock) -> Callable[[Scenario], None]:
    """Runs a scenario with an admin's calls."""

    async def run(scenario: Scenario) -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving(
                [BLUEPRINT], tmp_path, database_url=database_url, key=key, token_clock=token_clock
            ) as running,
            calls(running, running.user_token(name="admin", role=Role.ADMIN)) as admin,
        ):
            await scenario(running, admin)

    return lambda scenario: asyncio.run(run(scenario))
