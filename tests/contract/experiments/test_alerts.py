"""Setting alerts: what a workspace may have, and what is left without the key."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Iterator, Sequence

import pytest
from contract.experiments.accounts.test_statements import statements
from contract.experiments.test_lifecycle import Store, experiment_row
from support.clocks import ManualClock
from support.databases import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import alerts_service_pb2 as pb2
from resolute.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from resolute_experiments.accounts.store import tokens, workspaces
from resolute_experiments.accounts.store.tokens import IssuedToken
from resolute_experiments.alerts import watching
from resolute_experiments.alerts.delivery import Endpoints
from resolute_experiments.alerts.egress import networks
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.alerts.watching import AlertWatch
from resolute_experiments.servicers.alerts import AlertsServicer
from resolute_experiments.states import TrialState
from resolute_experiments.store import alerts as alerts_table
from resolute_experiments.store import experiments, trials
from resolute_experiments.store.alerts import CLUSTER
from resolute_serving.database.engine import Database
from resolute_serving.sealing import Sealer
from resolute_serving.workers.threads import BoundedThreads

DOCUMENT = """
endpoints:
- {name: team, type: slack, url: "https://hooks.slack.com/services/T0/B0/secret"}
rules:
- {on: RULE, to: [team], seconds: 60}
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    made = Database(database_url, name="experiments")
    migrate(made.engine, package="resolute_experiments", schema="experiments")
    yield made
    made.close()


def servicer(database: Database, key: bytes) -> AlertsServicer:
    core = context(database, ManualClock())
    settings = AlertSettings(allowed=networks("127.0.0.1"))
    threads = BoundedThreads("tests", threads=1)
    return AlertsServicer(core, endpoints=Endpoints(Sealer(key), settings), threads=threads)


def set_alerts(alerts: AlertsServicer, text: str, workspace: int = CLUSTER) -> str:
    request = pb2.SetAlertsRequest(workspace_id=workspace, alerts_yaml=text)
    return asyncio.run(alerts.SetAlerts(request, None)).alerts_yaml


def test_endpoints_that_do_not_answer_hold_up_nothing_but_other_tests_of_endpoints(
    database: Database,
) -> None:
    async def scenario(url: str) -> None:
        alerts = servicer(database, bytes(32))
        text = f"endpoints: [{{name: silent, type: webhook, url: '{url}'}}]"
        await alerts.SetAlerts(pb2.SetAlertsRequest(alerts_yaml=text), None)
        request = pb2.TestEndpointRequest(endpoint="silent")
        tests = [asyncio.create_task(alerts.TestEndpoint(request, None)) for _ in range(2)]
        done, [waiting] = await asyncio.wait(tests, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(UnavailableError, match="too many such calls at the same time"):
            await done.pop()
        listening.accept()[0].close()
        with pytest.raises(UnavailableError, match="127"):
            await waiting

    with socket.create_server(("127.0.0.1", 0)) as listening:
        asyncio.run(scenario(f"http://127.0.0.1:{listening.getsockname()[1]}/"))


def test_alerts_are_set_again_after_the_key_was_lost(database: Database) -> None:
    text = DOCUMENT.replace("RULE", "token")
    shown = set_alerts(servicer(database, bytes(32)), text)
    alerts = servicer(database, bytes(31) + b"1")
    with pytest.raises(FailedPreconditionError, match="was not encrypted with"):
        asyncio.run(alerts.GetAlerts(pb2.GetAlertsRequest(), None))
    with pytest.raises(InvalidArgumentError, match="a hidden secret that is not known"):
        set_alerts(alerts, shown)
    assert set_alerts(alerts, text) == shown
    assert asyncio.run(alerts.GetAlerts(pb2.GetAlertsRequest(), None)).alerts_yaml == shown


@pytest.mark.parametrize("kind", ["problem", "token"])
def test_a_workspace_is_refused_the_rules_of_the_cluster(database: Database, kind: str) -> None:
    alerts = servicer(database, bytes(32))
    made = asyncio.run(database.write(lambda c: workspaces.create(c, "vision", owner="ada", now=1.0)))
    with pytest.raises(InvalidArgumentError, match="only the alerts of the cluster"):
        set_alerts(alerts, DOCUMENT.replace("RULE", kind), made.number)
    assert set_alerts(alerts, DOCUMENT.replace("RULE", kind))
    assert set_alerts(alerts, DOCUMENT.replace("RULE", "queue_wait"), made.number)


def test_long_queues_elsewhere_hold_up_no_alert_of_a_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_WAITS_AT_ONCE", 2)
    store, clock = Store(database.engine), ManualClock(1000.0)
    for queued_at in (1.0, 2.0, 3.0):
        queue(store, queued_at)
    store.experiment_id = str(uuid.uuid4())
    row = {**experiment_row(store.experiment_id), "workspace": "vision"}
    store.run(lambda c: experiments.insert(c, row, b""))
    queue(store, 4.0)
    made = store.run(lambda c: workspaces.create(c, "vision", owner="ada", now=1.0))
    rules = DOCUMENT.replace("RULE", "queue_wait")
    for workspace in (CLUSTER, made.number):
        set_alerts(servicer(database, bytes(32)), rules, workspace)

    async def no_problems() -> Sequence[str]:
        return ()

    def deliveries(workspace: int) -> int:
        return len(store.run(lambda c: alerts_table.latest(c, workspace, limit=100)))

    watch = AlertWatch(context(database, clock), problems=no_problems)
    asyncio.run(watch.look())
    assert (deliveries(CLUSTER), deliveries(made.number)) == (2, 1)
    asyncio.run(watch.look())
    assert deliveries(CLUSTER) == 4
    # A service that starts again looks at all of them, and has nothing to say.
    again = AlertWatch(context(database, clock), problems=no_problems)
    for _ in range(3):
        asyncio.run(again.look())
    assert (deliveries(CLUSTER), deliveries(made.number)) == (4, 1)


def test_a_look_takes_as_many_statements_for_many_tokens_and_waits_as_for_few(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock(1000.0)
    rules = "endpoints: [{name: team, type: webhook, url: 'https://example.org'}]\nrules:\n"
    set_alerts(
        servicer(database, bytes(32)),
        f"{rules}- {{on: token, to: [team], seconds: 60}}\n- {{on: queue_wait, to: [team], seconds: 60}}\n",
    )

    async def no_problems() -> Sequence[str]:
        return ()

    def seen(count: int) -> int:
        """Statements of the look of a service that starts, when all is delivered already."""
        for _ in range(count):
            queue(store, 1.0)
            store.run(
                lambda c: tokens.insert(
                    c,
                    IssuedToken(
                        id=uuid.uuid4().hex,
                        username="ada",
                        user_number=1,
                        description="",
                        created_at=1.0,
                        expires_at=1030.0,
                        revoked=False,
                    ),
                )
            )
        asyncio.run(AlertWatch(context(database, clock), problems=no_problems).look())
        with statements() as found:
            asyncio.run(AlertWatch(context(database, clock), problems=no_problems).look())
        return len(found)

    assert seen(2) == seen(10)


def queue(store: Store, queued_at: float) -> None:
    """Adds a trial that waits for slots."""
    trial = store.trial(store.create_trial())
    store.run(lambda c: trials.update(c, trial, state=TrialState.QUEUED.value, queued_at=queued_at))
