"""Sends alerts: a delivery is repeated until accepted, for at most 24 hours. No endpoint delays another."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.calls.logged_backoff import LoggedBackoff
from resolute.contracts.tasks import end_tasks
from resolute.errors import FailedPreconditionError, NotFoundError, ResoluteError, UnavailableError
from resolute_experiments.alerts.alert import Alert, request_for
from resolute_experiments.alerts.document import AlertsDocument, Mail, read_alerts
from resolute_experiments.alerts.egress import post
from resolute_experiments.alerts.settings import AlertSettings
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import alerts
from resolute_experiments.store.alerts import Delivery
from resolute_experiments.topics import ALERTS
from resolute_serving.database.remembered import Remembered
from resolute_serving.repetition import repeat
from resolute_serving.sealing import Sealer

_LOOK_SECONDS = 0.5
_QUIET_SECONDS = 5.0
"""Between two looks while no alerts are set; another replica may set some."""
_THREADS = 64
MOST_OF_ENDPOINT = 8
"""Most deliveries to one endpoint at a time: one that does not answer holds no more threads than these."""
_CLAIM_SECONDS = 30.0
"""After which a delivery that is under way is taken for lost with its process; longer than one may take."""
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_GIVE_UP_SECONDS = 86400.0
_FORGET_SECONDS = 3600.0
_log = structlog.get_logger("alerts")


class Endpoints:
    """The documents of alerts, with encrypted secrets, and deliveries to their endpoints.

    Args:
        sealer: Encrypts and decrypts documents.
        settings: The operator's settings of alerts.
    """

    def __init__(self, sealer: Sealer, settings: AlertSettings) -> None:
        self._sealer = sealer
        self._settings = settings
        # To parse a document takes longer than to send an alert.
        self._read: dict[int, tuple[bytes, AlertsDocument]] = {}

    def seal(self, document: AlertsDocument, workspace_number: int) -> bytes:
        """Encrypts a document."""
        return self._sealer.seal(document.stored(), purpose=_purpose(workspace_number))

    def read(self, connection: Connection, workspace_number: int) -> AlertsDocument:
        """Reads the document of a workspace; an empty one where none was set."""
        found = alerts.sealed(connection, workspace_number)
        if found is None:
            return AlertsDocument()
        sealed, document = self._read.get(workspace_number, (b"", AlertsDocument()))
        if sealed != found:
            text = self._sealer.unseal(found, purpose=_purpose(workspace_number))
            document = read_alerts(text, earlier=AlertsDocument())
            self._read[workspace_number] = (found, document)
        return document

    def renew(self, connection: Connection) -> int:
        """Encrypts with the first key all that older keys have encrypted; returns how many documents."""
        count = 0
        for workspace_number, sealed in alerts.all_sealed(connection).items():
            renewed = self._sealer.renewed(sealed, purpose=_purpose(workspace_number))
            if renewed is not None:
                alerts.reseal(connection, workspace_number, renewed)
                count += 1
        return count

    def send(self, document: AlertsDocument, name: str, alert: Alert) -> None:
        """Tells one endpoint of an alert.

        Raises:
            FailedPreconditionError: It may not be reached, or no mails are sent here.
            NotFoundError: There is no such endpoint.
            UnavailableError: It did not take the alert.
        """
        page = self._settings.page_url
        alert = replace(alert, link=f"{page}/{alert.link}" if page and alert.link else "")
        endpoint = document.endpoint(name)
        if endpoint is None:
            raise NotFoundError(f"there is no endpoint {name!r}; `resolute alert describe` shows them")
        if isinstance(endpoint, Mail):
            if self._settings.mail is None:
                raise FailedPreconditionError(
                    "this cluster sends no mails; the operator sets RESOLUTE_SMTP_URL"
                )
            from resolute_experiments.alerts.mail import send_mail  # here: few clusters send any

            send_mail(self._settings.mail, endpoint.to, alert)
            return
        request = request_for(endpoint, alert)
        answer = post(request.url, request.body, request.headers, allowed=self._settings.allowed)
        if not 200 <= answer.status < 300:
            # What the server says may hold what it was sent; the status is enough.
            raise UnavailableError(f"endpoint {name!r} answered with status {answer.status}")


class AlertDelivery:
    """Sends due deliveries, from ``run`` until the service stops.

    Args:
        core: The context that all handlers share.
        endpoints: Sends to endpoints.
    """

    def __init__(self, core: ServiceContext, endpoints: Endpoints) -> None:
        self._core = core
        self._endpoints = endpoints
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="alerts")
        self._sending: dict[asyncio.Task[None], tuple[int, str]] = {}
        self._forget_at = 0.0
        self._first_due = Remembered(core.database, alerts.first_due)
        self._rules = Remembered(core.database, alerts.rules)

    async def run(self) -> None:
        """Sends what is due until the service stops."""

        async def look() -> float:
            await self.look()
            return _LOOK_SECONDS if self._sending or await self._anything_set() else _QUIET_SECONDS

        failures = LoggedBackoff(_log, "alerts cannot be sent")
        try:
            await repeat(look, notifier=self._core.notifier, topics=[ALERTS], failures=failures)
        finally:
            await end_tasks(*self._sending)
            # A post that is under way ends by itself; its alert is sent again after a restart.
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def look(self) -> None:
        """Begins to send what is due and has a free thread."""
        now = self._core.clock.time()
        busy = Counter(self._sending.values())
        room = _THREADS - len(self._sending)
        claim = partial(
            alerts.due,
            now=now,
            until=now + _CLAIM_SECONDS,
            limit=room,
            busy=busy,
            of_endpoint=MOST_OF_ENDPOINT,
        )
        first = await self._first_due.get() if room > 0 else None
        if first is not None and first <= now:
            for delivery in await self._core.database.write(claim):
                task = asyncio.create_task(self._send(delivery), name=f"alert-{delivery.position}")
                self._sending[task] = (delivery.workspace_number, delivery.endpoint)
                task.add_done_callback(self._sent)
        if now >= self._forget_at:
            self._forget_at = now + _FORGET_SECONDS
            await self._core.database.write(partial(alerts.forget, before=now - alerts.KEPT_SECONDS))

    async def _anything_set(self) -> bool:
        """Whether there can be alerts to send."""
        return bool(await self._rules.get()) or await self._first_due.get() is not None

    def _sent(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._core.notifier.notify(ALERTS)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an alert could not be settled", exc_info=task.exception())

    async def _send(self, delivery: Delivery) -> None:
        problem = ""
        try:
            document = await self._core.database.read(
                partial(self._endpoints.read, workspace_number=delivery.workspace_number)
            )
            work = partial(self._endpoints.send, document, delivery.endpoint, Alert(**delivery.alert))
            await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except ResoluteError as error:
            problem = str(error)
        except Exception:  # noqa: BLE001 - one defect must not hold up the others
            _log.exception("the delivery of an alert failed by a defect", key=delivery.key)
            problem = "the delivery failed by a defect; the log of the service has the cause"
        now = self._core.clock.time()
        if not problem:
            await self._core.database.write(
                partial(alerts.settle, position=delivery.position, delivered_at=now)
            )
            return
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(delivery.attempts, 20))
        given_up = now + pause > delivery.created_at + _GIVE_UP_SECONDS
        _log.warning("an alert was not taken", endpoint=delivery.endpoint, reason=problem, given_up=given_up)
        await self._core.database.write(
            partial(
                alerts.settle,
                position=delivery.position,
                due_at=None if given_up else now + pause,
                problem=f"given up: {problem}" if given_up else problem,
            )
        )


def _purpose(workspace_number: int) -> str:
    return f"alerts of workspace {workspace_number}"
