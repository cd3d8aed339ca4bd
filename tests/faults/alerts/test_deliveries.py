"""Alerts go to real servers, some of which are slow, away or hostile, from a service that is killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from support.databases.prepared import migrate
from support.services.experiments_context import context
from support.services.stand_ins.alert_receivers import SECRET, Receivers, receivers
from support.waiting import wait_until, wait_until_async

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute_experiments.alerts.alert import Alert
from resolute_experiments.alerts.delivery import MOST_OF_ENDPOINT, AlertDelivery, Endpoints
from resolute_experiments.alerts.document import AlertsDocument, read_alerts
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.store import alerts
from resolute_experiments.store.alerts import CLUSTER, StoredRules
from resolute_serving.database.engine import Database
from resolute_serving.sealing import Sealer, SealingKey

PROGRAM = Path(__file__).with_name("delivery_process.py")
GOOD = ("webhook", "slack", "mail", "flaky")
HOSTILE = ("silent", "endless", "redirecting", "forbidden")


class Scene:
    """A database with a document of endpoints, and the servers that these lead to."""

    def __init__(self, folder: Path, servers: Receivers) -> None:
        self.url, self.key = f"sqlite:///{folder / 'experiments.db'}", folder / "key"
        self.servers = servers
        self.database = Database(self.url, name="experiments")
        migrate(self.database.engine, package="resolute_experiments", schema="experiments")
        text = f"""
endpoints:
- {{name: webhook, type: webhook, url: "{servers.url}/webhook", secret: {SECRET}}}
- {{name: slack, type: slack, url: "{servers.url}/slack"}}
- {{name: mail, type: email, to: [team@example.org]}}
- {{name: flaky, type: webhook, url: "{servers.url}/flaky"}}
- {{name: silent, type: webhook, url: "{servers.url}/silent"}}
- {{name: endless, type: webhook, url: "{servers.url}/endless"}}
- {{name: redirecting, type: webhook, url: "{servers.url}/redirecting"}}
- {{name: forbidden, type: webhook, url: "{servers.url.replace("127.0.0.1", "127.0.0.2")}/secret"}}
"""
        document = read_alerts(text, earlier=AlertsDocument())
        sealed = Endpoints(SealingKey().open(self.key), AlertSettings()).seal(document, CLUSTER)
        assert SECRET.encode() not in sealed
        stored = StoredRules(workspace_number=CLUSTER, rules=(), only_named=frozenset())
        self.write(partial(alerts.write, stored=stored, sealed=sealed, now=0.0))

    def write(self, work: partial[None]) -> None:
        asyncio.run(self.database.write(work))

    def raise_alert(self, key: str, endpoints: Sequence[str]) -> None:
        self.write(self.alert(key, endpoints))

    def alert(self, key: str, endpoints: Sequence[str]) -> partial[None]:
        """What raises an alert in a transaction."""
        alert = Alert(key=key, on="alert", title=f"<Alert> & {key}", text="text", time=time.time())
        told = [(CLUSTER, name) for name in endpoints]
        return partial(alerts.put, key=key, alert=alert.stored(), endpoints=told, now=alert.time)

    def variables(self) -> dict[str, str]:
        """What the operator says."""
        return {
            "RESOLUTE_ALERTS_ALLOWED": "127.0.0.1",
            "RESOLUTE_SMTP_URL": self.servers.smtp,
            "RESOLUTE_SMTP_FROM": "resolute@example.org",
        }

    @contextmanager
    def sending(self) -> Iterator[subprocess.Popen[str]]:
        """A service that sends until the block ends, then is killed."""
        variables = {**os.environ, **self.variables()}
        command = [sys.executable, str(PROGRAM), self.url, str(self.key)]
        with subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "sending\n"
                yield process
            finally:
                process.kill()

    def latest(self) -> list[alerts.Delivery]:
        return asyncio.run(
            self.database.read(partial(alerts.latest, workspace_number=CLUSTER, limit=100_000))
        )


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with receivers() as servers:
        made = Scene(tmp_path, servers)
        yield made
        made.database.close()


def test_each_endpoint_that_answers_is_told_of_each_alert_although_the_service_is_killed(
    scene: Scene,
) -> None:
    received = scene.servers.received
    keys = [f"event-{number}" for number in range(200)]
    kills = 5
    for part in range(kills):
        with scene.sending():
            for key in keys[part::kills]:
                scene.raise_alert(key, GOOD)
                # The cause may be told again: its key is the same.
                scene.raise_alert(key, GOOD)
            wait_until(partial(received.took, keys[part], ("webhook",)), what="an alert to be taken")
    with scene.sending():
        wait_until(lambda: all(received.keys(name) == set(keys) for name in GOOD), what="all to be told")
        wait_until(lambda: all(each.delivered_at for each in scene.latest()), what="all to be settled")
    # Again only what was under way when the service was killed, under the same key.
    for name in GOOD:
        again = sum(len(times) - 1 for times in received.times[name].values())
        assert again <= MOST_OF_ENDPOINT * kills, name
    assert len(scene.latest()) == len(keys) * len(GOOD)
    assert "&lt;Alert&gt; &amp;" in received.bodies["slack"]["event-0"]["text"]


def test_receivers_that_answer_are_told_within_seconds_whatever_the_others_do(scene: Scene) -> None:
    received, answering = scene.servers.received, ("webhook", "slack", "mail")
    raised: dict[str, float] = {}
    settings = AlertSettings.from_environment(scene.variables())
    core = context(scene.database, SYSTEM_CLOCK)

    async def serve() -> None:
        sending = asyncio.create_task(
            AlertDelivery(core, Endpoints(Sealer.open(scene.key), settings)).run(), name="alert-delivery"
        )
        for number in range(40):
            key = f"event-{number}"
            raised[key] = time.time()
            await scene.database.write(scene.alert(key, (*HOSTILE, *answering)))
            await wait_until_async(partial(received.took, key, answering), what="all to be told")
        core.notifier.close()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    asyncio.run(serve())
    times = [received.times[name] for name in answering]
    waits = sorted(of[key][0] - raised[key] for of in times for key in raised)
    # Had they waited for a hostile one, it would be for its deadline of ten seconds each.
    assert waits[int(len(waits) * 0.99)] <= 10.0, waits[-5:]
    problems = {each.endpoint: each.problem for each in scene.latest() if each.problem}
    assert "not a public address" in problems["forbidden"]
    assert "status 307" in problems["redirecting"]
    # Neither a redirect nor another address led there.
    assert received.keys("secret") == set()
