"""Alerts of a script, which go to the endpoints of its workspace."""

from __future__ import annotations

import logging
import uuid

from resolute.api.experiments.v1 import alerts_service_pb2 as alerts
from resolute.contracts.calls.backoff import Backoff, retry
from resolute.contracts.unicode_text import valid_unicode
from resolute.core.remote.session import Session
from resolute.errors import ResoluteError, UnavailableError

_SECONDS = 10.0
_DEADLINE = 5.0
_log = logging.getLogger("resolute.core")


class RemoteAlerts:
    """Raises alerts at the experiments service.

    Args:
        session: The services.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def raise_alert(self, title: str, text: str, level: str) -> None:
        """Raises an alert once; a cluster that does not answer for 10 seconds does not get it."""
        request = alerts.RaiseAlertRequest(
            trial_id=self._session.connection.trial_id,
            alert_id=str(uuid.uuid4()),
            title=valid_unicode(str(title)),
            text=valid_unicode(str(text)),
            level=level,
        )
        try:
            self._session.check_process()
            retry(
                lambda: self._session.alerts.RaiseAlert(request, timeout=_DEADLINE),
                outage_timeout=_SECONDS,
                backoff=Backoff(first=0.2, longest=2.0),
                retried=(UnavailableError,),
            )
        except ResoluteError as failure:
            _log.warning("an alert did not reach the cluster: %s", failure)
