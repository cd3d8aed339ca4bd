"""Setting alerts: what a workspace may have, and what is left without the key."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from contract.experiments.accounts.test_statements import statements
from contract.experiments.lifecycle.test_lifecycle import NOTHING_SEALED, NOW, Store, experiment_row
from sqlalchemy.engine import Connection
from support.clocks import ManualClock
from support.databases.prepared import migrate
from support.services.experiments_context import context

from resolute.api.experiments.v1 import alerts_service_pb2 as pb2
from resolute.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    QuotaError,
    UnavailableError,
)
from resolute_embedded.network.self_signed import self_signed
from resolute_experiments.accounts.store import tokens, workspaces
from resolute_experiments.accounts.store.tokens import IssuedToken
from resolute_experiments.admission.config_reader import SMALL_CHARACTERS, ConfigReader
from resolute_experiments.alerts import watching
from resolute_experiments.alerts.certificates import Certificates
from resolute_experiments.alerts.delivery import Endpoints
from resolute_experiments.alerts.egress import networks
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.alerts.watching import AlertWatch, Observed
from resolute_experiments.exits.policy import Decision, Exit
from resolute_experiments.exits.recording import Evidence, record_run_exit
from resolute_experiments.servicers.alerts import MOST_A_MINUTE, AlertsServicer
from resolute_experiments.states import ExperimentState, RunEvent, TrialEvent, TrialState
from resolute_experiments.store import alerts as alerts_table
from resolute_experiments.store import experiments, runs, trials
from resolute_experiments.store.alerts import CLUSTER
from resolute_serving.database.engine import Database
from resolute_serving.sealing import Sealer
from resolute_serving.workers.pool import WorkerPool
from resolute_serving.workers.threads import BoundedThreads

DAY = 86400.0
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


def servicer(database: Database, key: bytes, clock: ManualClock | None = None) -> AlertsServicer:
    core = context(database, clock or ManualClock())
    settings = AlertSettings(allowed=networks("127.0.0.1"))
    threads = BoundedThreads("tests", threads=1)
    endpoints = Endpoints(Sealer(key), settings)
    return AlertsServicer(core, reader=ConfigReader({}), endpoints=endpoints, threads=threads)


def set_alerts(alerts: AlertsServicer, text: str, workspace: int = CLUSTER) -> str:
    request = pb2.SetAlertsRequest(workspace_id=workspace, alerts_yaml=text)
    return asyncio.run(alerts.SetAlerts(request, None)).alerts_yaml


def test_long_documents_are_read_in_a_process_one_at_a_time_of_each_caller(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    async def run(_: WorkerPool, work: Any, document: str, *, caller: str) -> Any:
        read.append(caller)
        return work(document)

    monkeypatch.setattr(WorkerPool, "run", run)
    document = DOCUMENT.replace("RULE", "node_lost")
    for text in (document, f"{document}# {'x' * SMALL_CHARACTERS}\n", f"{document}# & *\n"):
        set_alerts(servicer(database, bytes(32)), text)
    assert len(read) == 2


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


def test_a_script_raises_some_alerts_a_minute_and_others_go_on(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock(1000.0)
    loud, other = store.create_trial(), store.create_trial()
    alerts = servicer(database, bytes(32), clock)
    set_alerts(alerts, DOCUMENT.replace("RULE", "alert").replace(", seconds: 60", ""))

    def raised(trial: str) -> None:
        request = pb2.RaiseAlertRequest(trial_id=trial, alert_id=str(uuid.uuid4()), level="info")
        asyncio.run(alerts.RaiseAlert(request, None))

    for _ in range(MOST_A_MINUTE):
        raised(loud)
    with pytest.raises(QuotaError, match=f"{MOST_A_MINUTE} alerts within a minute"):
        raised(loud)
    raised(other)
    clock.advance(60.0)
    raised(loud)
    assert len(store.run(lambda c: alerts_table.latest(c, CLUSTER, limit=100))) == MOST_A_MINUTE + 2


@pytest.mark.parametrize("kind", ["problem", "token", "certificate"])
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

    def deliveries(workspace: int) -> int:
        return len(store.run(lambda c: alerts_table.latest(c, workspace, limit=100)))

    watch = AlertWatch(context(database, clock), observed())
    asyncio.run(watch.look())
    assert (deliveries(CLUSTER), deliveries(made.number)) == (2, 1)
    asyncio.run(watch.look())
    assert deliveries(CLUSTER) == 4
    # A service that starts again looks at all of them, and has nothing to say.
    again = AlertWatch(context(database, clock), observed())
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
        asyncio.run(AlertWatch(context(database, clock), observed()).look())
        with statements() as found:
            asyncio.run(AlertWatch(context(database, clock), observed()).look())
        return len(found)

    assert seen(2) == seen(10)


def test_a_pool_that_has_fewer_nodes_than_before_is_told_once(database: Database) -> None:
    nodes, clock = {"batch": 4, "desk": 1}, ManualClock(1000.0)
    set_alerts(servicer(database, bytes(32)), DOCUMENT.replace("RULE", "node_lost"))
    watch = AlertWatch(context(database, clock), observed(nodes=lambda: nodes))
    for count in (4, 3, 3, 4):
        nodes["batch"] = count
        clock.advance(2.0)
        asyncio.run(watch.look())
    assert told(database) == ["Pool batch has 3 nodes that take work; it had 4."]


def test_certificates_are_told_of_before_they_end(database: Database, tmp_path: Path) -> None:
    clock = ManualClock(1_800_000_000.0)
    made_at = datetime.fromtimestamp(clock.time(), timezone.utc)
    files = self_signed(tmp_path, names=["resolute.example"], now=made_at)
    unreadable = tmp_path / "other.pem"
    unreadable.write_text("no certificate")
    certificates = Certificates([files.certificate, unreadable, tmp_path / "missing.pem"])
    rule = DOCUMENT.replace("RULE", "certificate").replace("seconds: 60", f"seconds: {7 * DAY}")
    set_alerts(servicer(database, bytes(32)), rule)
    watch = AlertWatch(context(database, clock), observed(certificates=certificates.ends))
    asyncio.run(watch.look())
    assert told(database) == []
    clock.advance(3650 * DAY - 6 * DAY)
    for _ in range(2):
        asyncio.run(watch.look())
    (text,) = told(database)
    assert text.startswith(f"The certificate of CN=resolute.example ({files.certificate}) ends in 6.0 days")


def test_a_quota_that_is_nearly_used_up_is_told_of_each_day(database: Database) -> None:
    store, clock = Store(database.engine), ManualClock(10 * DAY)
    made = asyncio.run(database.write(lambda c: workspaces.create(c, "vision", owner="ada", now=1.0)))
    store.experiment_id = str(uuid.uuid4())
    row = {**experiment_row(store.experiment_id), "workspace": "vision"}
    store.run(lambda c: experiments.insert(c, row, b""))
    quota = workspaces.Quota(live_experiments=1, slots=4, storage_bytes=1000)
    store.run(lambda c: workspaces.set_quota(c, made, quota))
    rule = DOCUMENT.replace("RULE", "quota").replace("seconds", "percent")
    for workspace in (CLUSTER, made.number):
        set_alerts(servicer(database, bytes(32)), rule, workspace)
    used = {made.number: 599}

    async def storage(workspace: int) -> int:
        if workspace not in used:
            raise UnavailableError("the checkpoints service does not answer")
        return used[workspace]

    watch = AlertWatch(context(database, clock), observed(storage=storage))
    for _ in range(2):
        asyncio.run(watch.look())
    full = "Workspace vision uses 1 of 1, its quota of experiments; beyond it, new ones are refused."
    assert told(database) == told(database, made.number) == [full]
    # Storage is counted file by file, so not at each look; what was known holds while nobody answers.
    used[made.number] = 600
    asyncio.run(watch.look())
    assert told(database) == [full]
    clock.advance(600.0)
    asyncio.run(watch.look())
    used.clear()
    clock.advance(600.0)
    asyncio.run(watch.look())
    stored = "Workspace vision uses 600 B of 1000 B, its quota of storage; beyond it, new experiments are "
    stored += "refused."
    assert sorted(told(database)) == sorted(told(database, made.number)) == sorted([full, stored])
    clock.advance(DAY)
    asyncio.run(watch.look())
    assert sorted(told(database)) == sorted([full, stored] * 2)


def test_a_run_that_was_lost_is_told_with_the_words_of_its_engine(database: Database) -> None:
    store = Store(database.engine)
    store.experiment_id = str(uuid.uuid4())
    store.run(lambda c: experiments.insert(c, experiment_row(store.experiment_id), b""))
    set_alerts(servicer(database, bytes(32)), DOCUMENT.replace("RULE", "node_lost"))
    trial_id = store.create_trial()
    run = store.start(trial_id)
    store.run(lambda c: runs.update_container(c, run.allocation_id, 0, lost=True, failure="NODE_FAIL"))

    def write(connection: Connection) -> None:
        record_run_exit(
            connection,
            trials.get(connection, trial_id=trial_id),
            run,
            evidence=Evidence(exit=Exit(lost=True), failure="", sealed=NOTHING_SEALED),
            decision=Decision(RunEvent.LOSE, TrialEvent.RUN_RESUMES),
            experiment=ExperimentState.ACTIVE,
            timing=NOW,
        )

    store.run(write)
    store.run(write)
    (text,) = told(database)
    assert text.startswith("Run 1 was lost with its machine or its supervisor: container 0")
    assert "(NODE_FAIL)" in text


def observed(**changes: Any) -> Observed:
    """A cluster without problems, of which some things are as a test says."""

    async def no_problems() -> Sequence[str]:
        return ()

    async def no_storage(workspace: int) -> int:
        return 0

    usual = Observed(problems=no_problems, nodes=dict, certificates=list, storage=no_storage)
    return replace(usual, **changes)


def told(database: Database, workspace: int = CLUSTER) -> list[str]:
    """The texts of what the endpoints of a workspace are to receive."""
    latest = asyncio.run(database.read(lambda c: alerts_table.latest(c, workspace, limit=100)))
    return [delivery.alert["text"] for delivery in latest]


def queue(store: Store, queued_at: float) -> None:
    """Adds a trial that waits for slots."""
    trial = store.trial(store.create_trial())
    store.run(lambda c: trials.update(c, trial, state=TrialState.QUEUED.value, queued_at=queued_at))
