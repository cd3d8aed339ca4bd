"""The connection of a trial's process to the services: one channel, opened at its first use, and retries."""

from __future__ import annotations

import functools
import gc
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import grpc

from resolute.api.checkpoints.v1.checkpoints_service_pb2_grpc import CheckpointsServiceStub
from resolute.api.experiments.v1.alerts_service_pb2_grpc import AlertsServiceStub
from resolute.api.experiments.v1.allocations_service_pb2_grpc import AllocationsServiceStub
from resolute.api.experiments.v1.trials_service_pb2_grpc import TrialsServiceStub
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.api.searcher.v1.searcher_service_pb2_grpc import SearcherServiceStub
from resolute.contracts.calls.backoff import Backoff, retry
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.run.directory import read_token
from resolute.errors import ForkedProcessError, UnauthenticatedError, UnavailableError
from resolute.rpc.channel import open_channel
from resolute.runtime.connection import Connection

OUTAGE_TIMEOUT_VARIABLE = "RESOLUTE_OUTAGE_TIMEOUT_SECONDS"
"""Variable of the environment: seconds that a call waits for services that do not answer."""
_EARLIER_VARIABLE = "RESOLUTE_PATIENCE_SECONDS"
"""The earlier name of that variable, which is still accepted."""
DEFAULT_OUTAGE_TIMEOUT = 3600.0
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 10.0
_log = logging.getLogger("resolute.core")
_T = TypeVar("_T")


class Session:
    """The services, for one process of a trial.

    Every call that goes through ``retry_during_outage`` is safe to repeat. So a restart of a service delays
    the training and does not end it.

    Args:
        connection: Address of the services and identity of the caller.
        tls: The trusted authorities; None for a plain port on this host.
        fallback_token: Token to use if the token's file does not exist.
        clock: Measures outages.
        sleep: Waits some seconds.
        outage_timeout: Seconds that a call waits for unavailable services; None reads
            ``RESOLUTE_OUTAGE_TIMEOUT_SECONDS``, one hour by default.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        tls: ClientTls | None = None,
        fallback_token: str = "",
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], None] = time.sleep,
        outage_timeout: float | None = None,
    ) -> None:
        self.connection = connection
        self._tls = tls
        self._fallback_token = fallback_token
        self._clock = clock
        self._sleep = sleep
        self.outage_timeout = _outage_timeout_from_environment() if outage_timeout is None else outage_timeout
        self._owner = os.getpid()

    @functools.cached_property
    def searcher(self) -> SearcherServiceStub:
        """The search."""
        return SearcherServiceStub(self._channel)

    @functools.cached_property
    def checkpoints(self) -> CheckpointsServiceStub:
        """The registry of checkpoints."""
        return CheckpointsServiceStub(self._channel)

    @functools.cached_property
    def metrics(self) -> MetricsServiceStub:
        """What was reported."""
        return MetricsServiceStub(self._channel)

    @functools.cached_property
    def trials(self) -> TrialsServiceStub:
        """The trial itself."""
        return TrialsServiceStub(self._channel)

    @functools.cached_property
    def alerts(self) -> AlertsServiceStub:
        """Which subscriber gets which event."""
        return AlertsServiceStub(self._channel)

    @functools.cached_property
    def allocations(self) -> AllocationsServiceStub:
        """The allocation of the run."""
        return AllocationsServiceStub(self._channel)

    def retry_during_outage(self, call: Callable[[], _T], *, purpose: str) -> _T:
        """Makes a call that may be repeated until the services answer.

        Args:
            call: Makes the call once.
            purpose: What it is for, in the warning that training waits.

        Returns:
            What the call returned.

        Raises:
            ForkedProcessError: This is a forked child.
            UnavailableError: The services were away for longer than the outage timeout.
            UnauthenticatedError: The token was not renewed within that time.
        """
        self.check_process()

        def log(waited: float, failure: Exception) -> None:
            _log.warning("%s waits for the services (%.0f s so far): %s", purpose, waited, failure)

        # A token expires only while the supervisor cannot renew it: that too is an outage.
        return retry(
            call,
            outage_timeout=self.outage_timeout,
            backoff=Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE, clock=self._clock),
            retried=(UnavailableError, UnauthenticatedError),
            on_retry=log,
            sleep=self._sleep,
        )

    def check_process(self) -> None:
        """Fails in a forked child, where even a new channel can hang.

        Raises:
            ForkedProcessError: This is not the process that created the session.
        """
        if os.getpid() != self._owner:
            raise ForkedProcessError(
                "this call comes from a process forked off the one that called core.init; make it there, "
                "or start workers with the spawn or forkserver method"
            )

    def close(self) -> None:
        """Closes the channel if one was opened. Does nothing in a forked child."""
        if os.getpid() == self._owner and "_channel" in self.__dict__:
            self._channel.close()

    @functools.cached_property
    def _channel(self) -> grpc.Channel:
        self.check_process()
        _freeze_gc_in_forked_children()
        return open_channel(
            self.connection.address,
            token=self._token,
            tls=self._tls,
            trace_id=self.connection.trace_id,
        )

    def _token(self) -> str:
        return read_token(Path(self.connection.token_path)) or self._fallback_token


@functools.cache
def _freeze_gc_in_forked_children() -> None:
    """Keeps the garbage collector of forked children away from what they inherit.

    Children must never touch gRPC, and collecting an old call of the parent's would be touching it.
    """
    os.register_at_fork(after_in_child=gc.freeze)


def _outage_timeout_from_environment() -> float:
    given = os.environ.get(OUTAGE_TIMEOUT_VARIABLE) or os.environ.get(_EARLIER_VARIABLE)
    return float(given or DEFAULT_OUTAGE_TIMEOUT)
