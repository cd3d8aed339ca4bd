"""The operations of a trial from the searcher service."""

from __future__ import annotations

import time
from collections.abc import Callable

from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.calls.backoff import Backoff
from resolute.core.preempt import Signal
from resolute.core.remote.session import Session

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


class RemoteOperations:
    """The source of operations on a cluster: the searcher service.

    Args:
        session: The services.
        signal: The allocation's signal. A trial without further operations acknowledges it, and the
            supervisor reports that with the exit.
        sleep: Waits some seconds.
    """

    def __init__(
        self, session: Session, *, signal: Signal, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._session = session
        self._signal = signal
        self._sleep = sleep

    def current_length(self) -> int | None:
        """Length of the operation that is to be done; None when there is none left.

        A trial may be up before the search has decided; then this waits, until the trial is asked to exit.
        """
        connection = self._session.connection
        request = searcher.GetOperationRequest(trial_id=connection.trial_id, run=connection.run)
        backoff = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        while True:
            operation = self._session.retry_during_outage(
                lambda: self._session.searcher.GetOperation(request), purpose="asking for the next operation"
            ).operation
            if operation.length and not operation.completed:
                return operation.length
            # A closed trial may still have its last operation to do: that case returned above.
            if operation.completed or operation.closed or self._signal.preempt:
                return None
            self._sleep(backoff.failed())

    def complete(self, length: int, metric: float) -> None:
        """Says that the operation is done."""
        connection = self._session.connection
        request = searcher.CompleteOperationRequest(
            trial_id=connection.trial_id, run=connection.run, length=length, metric=metric
        )
        self._session.retry_during_outage(
            lambda: self._session.searcher.CompleteOperation(request), purpose="completing an operation"
        )

    def report_progress(self, length: float) -> None:
        """Says how far the trial is."""
        connection = self._session.connection
        request = searcher.ReportProgressRequest(
            trial_id=connection.trial_id, run=connection.run, progress=length
        )
        self._session.retry_during_outage(
            lambda: self._session.searcher.ReportProgress(request), purpose="reporting progress"
        )

    def acknowledge_out_of_ops(self) -> None:
        """Leaves the promise for the supervisor."""
        self._signal.acknowledge()
