"""Keeps the lease of a run, and makes the small calls that go with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from resolute.api.preemption.v1.signal_pb2 import SignalReason
from resolute.contracts.atomic_files import write_atomically
from resolute.contracts.backoff import Backoff
from resolute.contracts.times import seconds_of
from resolute.errors import (
    AbortedError,
    FailedPreconditionError,
    NotFoundError,
    ResoluteError,
    UnauthenticatedError,
    UnavailableError,
)
from resolute_launch.container.task import ControlPlaneConnection, Task
from resolute_launch.control_plane.signal_state import SignalState
from resolute_launch.redaction import Secrets

_LONGEST_PAUSE = 5.0
_log = logging.getLogger("resolute.supervisor")


class LeaseRenewer:
    """A thread that renews the lease, rewrites the token, and passes requests on in between.

    Args:
        task: The run's task; the token lies in its directory.
        link: The way to the control plane; its outage timeout is renewed by each answer.
        signal_state: Takes the signal that each answer carries.
        secrets: Takes every token, so that none gets into the log.
        notify: Called in the thread when something is to be looked at.
    """

    def __init__(
        self,
        task: Task,
        link: ControlPlaneConnection,
        *,
        signal_state: SignalState,
        secrets: Secrets,
        notify: Callable[[], None],
    ) -> None:
        self._control = link.control
        self._outage_timeout = link.outage_timeout
        self._token_file = task.run.token_file
        self._signal_state = signal_state
        self._secrets = secrets
        self._ttl = seconds_of(task.spec.lease_ttl)
        self._notify = notify
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._backoff = Backoff(longest=_LONGEST_PAUSE)
        self._acknowledged: int | None = None
        self._preemption = SignalReason.SIGNAL_REASON_UNSPECIFIED
        self.pid = 0
        """Process id of the entrypoint; zero before it runs."""
        self.lost = ""
        """Why the run has no authority any more; empty while it has."""

    def start(self) -> None:
        """Begins to renew: the first time at once."""
        self._thread.start()

    def entrypoint_runs(self, pid: int) -> None:
        """Tells the control plane at once which process is the entrypoint."""
        self.pid = pid
        self._wake.set()

    def acknowledge(self, revision: int) -> None:
        """Passes on that the trial will exit because of the signal."""
        self._acknowledged = revision
        self._wake.set()

    def request_preemption(self, reason: SignalReason.ValueType) -> None:
        """Passes on that this machine, or this process, must go away."""
        self._preemption = reason
        self._wake.set()

    def stop(self) -> None:
        """Ends the thread; the lease runs out by itself."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set() and not self.lost:
            self._wake.wait(self._make_due_calls())
            self._wake.clear()

    def _make_due_calls(self) -> float:
        """Makes the calls that are due, and returns the seconds until the next ones."""
        try:
            self._renew()
            self._send_requests()
        except (AbortedError, NotFoundError, FailedPreconditionError) as failure:
            self.lost = str(failure)
            self._notify()
            return 0.0
        except Exception as failure:  # noqa: BLE001  # the lease is kept whatever goes wrong with one renewal
            _log.warning("the lease could not be renewed, it will be tried again: %s", failure)
            if self._outage_timeout.exhausted:
                self._notify()
            return self._backoff.failed()
        self._backoff.succeeded()
        return self._ttl / 3

    def _renew(self) -> None:
        response = self._control.renew_lease(pid=self.pid)
        self._outage_timeout.renew()
        self._store_token(response.bearer_token)
        if response.HasField("ttl"):
            self._ttl = seconds_of(response.ttl)
        if self._signal_state.update(response.signal):
            self._notify()

    def _store_token(self, token: str) -> None:
        if not token:
            return
        self._secrets.renew(token)
        try:
            write_atomically(self._token_file, token, mode=0o600)
        except OSError as failure:
            # The one before is good for a while yet, and the disk may have room again by then.
            _log.error("the renewed token could not be kept: %s", failure)

    def _send_requests(self) -> None:
        if self._preemption:
            reason, self._preemption = self._preemption, SignalReason.SIGNAL_REASON_UNSPECIFIED
            if not self._try_call(lambda: self._request_preemption(reason)):
                self._preemption = reason
        if self._acknowledged is not None:
            revision, self._acknowledged = self._acknowledged, None
            if not self._try_call(lambda: self._control.acknowledge_signal(revision)):
                self._acknowledged = revision

    def _request_preemption(self, reason: SignalReason.ValueType) -> None:
        if self._signal_state.update(self._control.request_preemption(reason)):
            self._notify()

    def _try_call(self, call: Callable[[], None]) -> bool:
        """Makes a call; False when it must be made again. Only a renewal tells whether the lease is lost."""
        try:
            call()
        except (UnavailableError, UnauthenticatedError) as failure:
            _log.warning("the control plane could not be told, it will be tried again: %s", failure)
            return False
        except ResoluteError as failure:
            _log.warning("the control plane did not want to know: %s", failure)
        return True
