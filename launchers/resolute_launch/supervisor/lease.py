"""Renews the lease of a run, and makes the small calls that go with it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from resolute.api.preemption.v1.signal_pb2 import SignalReason
from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import Clock, DueTime
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.times import seconds_of
from resolute.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from resolute.runtime.redaction import Secrets
from resolute_launch.container.task import Task
from resolute_launch.control_plane.connection import ControlPlaneConnection
from resolute_launch.control_plane.signal_state import SignalState

_LONGEST_PAUSE = 5.0
_LOOK_SECONDS = 1.0
"""Between two looks at the clocks."""
_FINAL = (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
"""Answers to a request that would be the same the next time."""
_log = logging.getLogger("resolute.supervisor")


class LeaseRenewer:
    """A thread that renews the lease and the token, and sends requests between the renewals.

    Args:
        task: The run's task; the tokens are files of its directory.
        connection: The connection to the control plane. Each answer resets its outage timeout.
        signal_state: Receives the signal of each answer.
        secrets: Receives every token, so that none appears in the log.
        notify: Called in the thread when the signal, the lease or an outage must be checked.
        clock: Clock for the due times of lease and token.
    """

    def __init__(
        self,
        task: Task,
        connection: ControlPlaneConnection,
        *,
        signal_state: SignalState,
        secrets: Secrets,
        notify: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._control = connection.control
        self._outage_timeout = connection.outage_timeout
        self._token_file = task.run.token_file
        self._user_token_file = task.run.user_token_file
        self._signal_state = signal_state
        self._secrets = secrets
        self._ttl = seconds_of(task.spec.lease_ttl)
        self._notify = notify
        self._due = DueTime(clock)
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._backoff = Backoff(longest=_LONGEST_PAUSE)
        self._acknowledged: int | None = None
        self._preemption = SignalReason.SIGNAL_REASON_UNSPECIFIED
        self._renewed = threading.Event()
        self.pid = 0
        """Process id of the entrypoint; zero before it runs."""
        self._hang = self._idle = ""
        self.lost = ""
        """Why the allocation was lost; empty while the run holds it."""

    def start(self) -> None:
        """Starts to renew; the first time at once."""
        self._thread.start()

    def wait_for_first_renewal(self, timeout: float) -> bool:
        """Waits until the lease has been renewed once, so that its tokens are there; tells whether it was."""
        return self._renewed.wait(timeout)

    def entrypoint_runs(self, pid: int) -> None:
        """Reports at once which process is the entrypoint."""
        self.pid = pid
        self._wake.set()

    def report_hang(self, sentence: str) -> None:
        """Tells at once what keeps the run from moving; empty once it moves again. Any thread may call it."""
        self._hang = sentence
        self._wake.set()

    def report_idle(self, sentence: str) -> None:
        """Tells at once how little the GPUs do; empty once they do enough. Any thread may call it."""
        self._idle = sentence
        self._wake.set()

    def acknowledge(self, revision: int) -> None:
        """Reports that the trial will exit because of the signal."""
        self._acknowledged = revision
        self._wake.set()

    def request_preemption(self, reason: SignalReason.ValueType) -> None:
        """Asks for the preemption of the allocation: this machine or this process must stop."""
        self._preemption = reason
        self._wake.set()

    def renew(self) -> None:
        """Renews once. The thread does so when it is due; others may, to learn whether anyone answers.

        Raises:
            ResoluteError: The control plane is away, or the allocation is lost.
        """
        response = self._control.renew_lease(pid=self.pid, hang=self._hang, idle=self._idle)
        self._outage_timeout.renew()
        self._store_token(response.bearer_token, self._token_file)
        self._store_token(response.user_token, self._user_token_file)
        if response.HasField("ttl"):
            self._ttl = seconds_of(response.ttl)
        self._renewed.set()
        if self._signal_state.update(response.signal):
            self._notify()

    def stop(self) -> None:
        """Ends the thread; the lease expires by itself."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set() and not self.lost:
            self._due.set(self._make_due_calls())
            # A wait does not end early when the machine wakes from a suspend, or its clock is set.
            while left := self._due.seconds_left:
                if self._wake.wait(min(left, _LOOK_SECONDS)):
                    break
            self._wake.clear()

    def _make_due_calls(self) -> float:
        """Makes the calls that are due, and returns the seconds until the next ones."""
        try:
            self.renew()
            sent = self._send_requests()
        except (AbortedError, NotFoundError, FailedPreconditionError) as failure:
            self.lost = str(failure)
            self._notify()
            return 0.0
        except Exception as failure:  # noqa: BLE001  # no failure of one renewal may end the renewals
            _log.warning("the lease could not be renewed, it will be tried again: %s", failure)
            if self._outage_timeout.exhausted:
                self._notify()
            return self._backoff.failed()
        if not sent:
            return min(self._backoff.failed(), self._ttl / 3)
        self._backoff.succeeded()
        return self._ttl / 3

    def _store_token(self, token: str, path: Path) -> None:
        if not token:
            return
        self._secrets.renew(token)
        try:
            write_atomically(path, token, mode=0o600)
        except OSError as failure:
            # The previous token is valid for a while, and the disk may have space again by then.
            _log.error("the renewed token could not be stored: %s", failure)

    def _send_requests(self) -> bool:
        """Sends what is to be reported; False if something of it must be sent again."""
        sent = True
        if reason := self._preemption:
            self._preemption = SignalReason.SIGNAL_REASON_UNSPECIFIED
            if not self._try_call(lambda: self._request_preemption(reason)):
                self._preemption = self._preemption or reason
                sent = False
        if (revision := self._acknowledged) is not None:
            self._acknowledged = None
            if not self._try_call(lambda: self._control.acknowledge_signal(revision)):
                self._acknowledged = revision if self._acknowledged is None else self._acknowledged
                sent = False
        return sent

    def _request_preemption(self, reason: SignalReason.ValueType) -> None:
        if self._signal_state.update(self._control.request_preemption(reason)):
            self._notify()

    def _try_call(self, call: Callable[[], None]) -> bool:
        """Makes a call; False if it must be repeated. Only a renewal decides whether the lease is lost."""
        try:
            call()
        except _FINAL as failure:
            _log.warning("the control plane refused a request: %s", failure)
        except Exception as failure:  # noqa: BLE001  # a spot notice must arrive whatever fails at first
            _log.warning("the control plane could not be reached, it will be tried again: %s", failure)
            return False
        return True
