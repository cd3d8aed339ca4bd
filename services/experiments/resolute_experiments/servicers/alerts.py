"""Handlers of AlertsService."""

from __future__ import annotations

from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import alerts_service_pb2 as pb2
from resolute.api.experiments.v1.alerts_service_pb2_grpc import AlertsServiceServicer
from resolute.errors import FailedPreconditionError, QuotaError
from resolute_experiments.accounts.store import workspaces
from resolute_experiments.admission.config_reader import ConfigReader
from resolute_experiments.alerts import raising
from resolute_experiments.alerts.alert import LEVELS, Alert
from resolute_experiments.alerts.delivery import Endpoints
from resolute_experiments.alerts.document import OF_CLUSTER, AlertsDocument
from resolute_experiments.context import ServiceContext
from resolute_experiments.servicers.messages.experiments import timestamp
from resolute_experiments.store import alerts, audit, experiments, trials
from resolute_experiments.store.alerts import CLUSTER, Delivery, StoredRules
from resolute_experiments.topics import ALERTS
from resolute_experiments.window import Window
from resolute_serving.validation import check_length, invalid
from resolute_serving.workers.threads import BoundedThreads

_LONGEST = 64 * 1024
_LISTED = 100
MOST_A_MINUTE = 30
"""How many alerts the script of a trial may raise: each goes to all endpoints of a rule, and stays a week."""


class AlertsServicer(AlertsServiceServicer):
    """The handlers of alerts: endpoints, rules and deliveries.

    Args:
        core: The context that all handlers share.
        reader: Reads documents.
        endpoints: Stores documents, and sends to endpoints.
        threads: Threads for tests of endpoints, which may answer slowly.
    """

    def __init__(
        self, core: ServiceContext, *, reader: ConfigReader, endpoints: Endpoints, threads: BoundedThreads
    ) -> None:
        self._core = core
        self._reader = reader
        self._endpoints = endpoints
        self._threads = threads
        self._raised = Window(core.clock, most=MOST_A_MINUTE)

    async def SetAlerts(self, request: pb2.SetAlertsRequest, context: Any) -> pb2.SetAlertsResponse:
        """Sets alerts in place of all that were there."""
        check_length(request.alerts_yaml, field="alerts_yaml", most=_LONGEST)
        number, now = request.workspace_id, self._core.clock.time()
        earlier = await self._core.database.read(lambda c: self._earlier(c, number))
        document = await self._reader.alerts(request.alerts_yaml, earlier=earlier)
        _check_kinds(document, number)
        stored = StoredRules(
            workspace_number=number,
            rules=tuple(rule.model_dump(mode="json") for rule in document.rules),
            only_named=frozenset(each.name for each in document.endpoints if each.only_named),
        )

        def work(connection: Connection) -> None:
            label = _label(connection, number)
            if document == AlertsDocument():
                alerts.delete(connection, number)
            else:
                alerts.write(connection, stored, sealed=self._endpoints.seal(document, number), now=now)
            audit.record(connection, "set_alerts", label, now=now)

        await self._core.database.write(work)
        self._core.notifier.notify(ALERTS)
        return pb2.SetAlertsResponse(alerts_yaml=document.shown())

    async def GetAlerts(self, request: pb2.GetAlertsRequest, context: Any) -> pb2.GetAlertsResponse:
        """Returns alerts without secrets."""
        document = await self._core.database.read(lambda c: self._read(c, request.workspace_id))
        return pb2.GetAlertsResponse(alerts_yaml=document.shown())

    async def TestEndpoint(self, request: pb2.TestEndpointRequest, context: Any) -> pb2.TestEndpointResponse:
        """Tells one endpoint now."""
        document = await self._core.database.read(lambda c: self._read(c, request.workspace_id))
        now = self._core.clock.time()
        alert = Alert(
            key=f"test-{now:.3f}",
            on="test",
            title="A test of Resolute's alerts",
            text="If you read this, the endpoint works.",
            time=now,
        )
        await self._threads.run(partial(self._endpoints.send, document, request.endpoint, alert))
        return pb2.TestEndpointResponse()

    async def ListDeliveries(
        self, request: pb2.ListDeliveriesRequest, context: Any
    ) -> pb2.ListDeliveriesResponse:
        """Returns the latest deliveries."""
        latest = partial(alerts.latest, workspace_number=request.workspace_id, limit=_LISTED)
        found = await self._core.database.read(latest)
        return pb2.ListDeliveriesResponse(deliveries=[_message(delivery) for delivery in found])

    async def RaiseAlert(self, request: pb2.RaiseAlertRequest, context: Any) -> pb2.RaiseAlertResponse:
        """Raises an alert of a script."""
        for field, most in (("alert_id", 64), ("title", 200), ("text", 3000)):
            check_length(getattr(request, field), field=field, most=most)
        if request.level not in LEVELS:
            raise invalid("level", f"level is {request.level!r}; it must be one of {', '.join(LEVELS)}")
        if self._raised.full(request.trial_id):
            raise QuotaError(
                f"the trial has raised {MOST_A_MINUTE} alerts within a minute, as many as it may; raise them "
                "for what people must look at, and log the rest"
            )
        self._raised.add(request.trial_id)
        now = self._core.clock.time()

        def work(connection: Connection) -> None:
            trial = trials.get(connection, trial_id=request.trial_id)
            experiment = experiments.get(connection, experiment_id=trial.experiment_id)
            alert = Alert(
                key=f"{trial.id}-{request.alert_id}",
                on="alert",
                title=request.title or f"Trial {trial.number} of {experiment.label}",
                text=request.text,
                level=request.level,
                time=now,
                link=f"trials/{trial.number}",
                experiment=experiment.number,
                trial=trial.number,
            )
            raising.raise_of_experiment(connection, alert, experiment)

        await self._core.database.write(work)
        return pb2.RaiseAlertResponse()

    def _earlier(self, connection: Connection, workspace_number: int) -> AlertsDocument:
        """The document that is replaced; an empty one where the key of its secrets was lost."""
        try:
            return self._read(connection, workspace_number)
        except FailedPreconditionError:
            return AlertsDocument()

    def _read(self, connection: Connection, workspace_number: int) -> AlertsDocument:
        _label(connection, workspace_number)
        return self._endpoints.read(connection, workspace_number)


def _label(connection: Connection, workspace_number: int) -> str:
    """Names the alerts of a workspace, which must exist, or of the cluster."""
    if workspace_number < CLUSTER:
        raise invalid("workspace_id", f"workspace_id is {workspace_number}; give 0 for the cluster, or more")
    if workspace_number == CLUSTER:
        return "the alerts of the cluster"
    return f"the alerts of workspace {workspaces.get(connection, number=workspace_number).name!r}"


def _check_kinds(document: AlertsDocument, workspace_number: int) -> None:
    """Refuses rules in a workspace that only those of the cluster may be."""
    for index, rule in enumerate(document.rules if workspace_number != CLUSTER else ()):
        if rule.on in OF_CLUSTER:
            raise invalid(
                f"rules[{index}].on",
                f"rules[{index}].on is {rule.on!r}, which only the alerts of the cluster may have; "
                "remove the rule, or set it for the cluster",
            )


def _message(delivery: Delivery) -> pb2.AlertDelivery:
    return pb2.AlertDelivery(
        key=delivery.key,
        endpoint=delivery.endpoint,
        title=delivery.alert["title"],
        create_time=timestamp(delivery.created_at),
        deliver_time=timestamp(delivery.delivered_at),
        due_time=timestamp(delivery.due_at),
        attempts=delivery.attempts,
        problem=delivery.problem,
    )
