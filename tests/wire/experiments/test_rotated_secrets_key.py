"""A service that finds a new key before the old one encrypts by it all that the old one has encrypted."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.services.in_process import Running, serving

from resolute.api.experiments.v1 import alerts_service_pb2 as alerts
from resolute.api.experiments.v1 import secrets_service_pb2 as secrets
from resolute.api.experiments.v1.alerts_service_pb2_grpc import AlertsServiceStub
from resolute.api.experiments.v1.secrets_service_pb2_grpc import SecretsServiceStub
from resolute.errors import FailedPreconditionError
from resolute_experiments.blueprint import BLUEPRINT

DOCUMENT = """
endpoints: [{name: own, type: webhook, url: "https://alerts.example.org/x", secret: key of the signature}]
rules: [{on: experiment, states: [ERROR], to: [own]}]
"""


def stored(folder: Path) -> list[bytes]:
    with closing(sqlite3.connect(folder / "experiments.sqlite")) as database:
        rows = database.execute("SELECT sealed FROM secrets UNION ALL SELECT sealed FROM alert_documents")
        return [bytes(row[0]) for row in rows]


def test_old_keys_can_be_dropped_after_one_start_with_both(tmp_path: Path) -> None:
    key = tmp_path / "data" / "experiments" / "secrets.key"

    async def fill(running: Running) -> None:
        async with running.channel(running.user_token(name="admin")) as channel:
            for name in ("hub", "index"):
                request = secrets.SetSecretRequest(name=name, value=f"the value of {name}")
                await as_any(SecretsServiceStub(channel)).SetSecret(request)
            await as_any(AlertsServiceStub(channel)).SetAlerts(alerts.SetAlertsRequest(alerts_yaml=DOCUMENT))

    async def read(running: Running) -> None:
        async with running.channel(running.user_token(name="admin")) as channel:
            await as_any(AlertsServiceStub(channel)).GetAlerts(alerts.GetAlertsRequest())

    async def scenario() -> None:
        async with serving([BLUEPRINT], tmp_path) as running:
            await fill(running)
        before, old = stored(tmp_path), key.read_bytes()
        assert len(before) == 3
        new = bytes(range(32))
        key.write_bytes(new + old)
        for _ in range(2):  # the second start finds nothing to do
            async with serving([BLUEPRINT], tmp_path) as running:
                await read(running)
            after = stored(tmp_path)
            assert not set(before) & set(after)
        async with serving([BLUEPRINT], tmp_path) as running:
            assert stored(tmp_path) == after
        key.write_bytes(new)
        async with serving([BLUEPRINT], tmp_path) as running:
            await read(running)
        key.write_bytes(old)
        async with serving([BLUEPRINT], tmp_path) as running:
            with pytest.raises(FailedPreconditionError, match="not encrypted with"):
                await read(running)

    asyncio.run(scenario())


def as_any(stub: Any) -> Any:
    return stub
