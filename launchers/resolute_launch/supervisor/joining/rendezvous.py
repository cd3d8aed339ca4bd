"""The rendezvous, in which the containers of a run learn each other's addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from resolute.api.experiments.v1.allocations_service_pb2 import RendezvousResponse
from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import Clock
from resolute.errors import DeadlineError, ResoluteError, UnavailableError
from resolute.info import RendezvousInfo


@dataclass(frozen=True, slots=True)
class RendezvousResult:
    """The addresses of all containers, by rank."""

    info: RendezvousInfo
    """As the trial receives it."""
    ports: Sequence[Sequence[int]]
    """Ports that each container has set aside."""


class Rendezvous:
    """A thread that announces a container and waits for the others.

    Args:
        announce: Makes one call.
        rank: Rank of this container.
        timeout: Seconds for all containers to join.
        clock: Measures the timeout.
        done: Called in the thread once there is a result.
    """

    def __init__(
        self,
        announce: Callable[[], RendezvousResponse],
        *,
        rank: int,
        timeout: float,
        clock: Clock,
        done: Callable[[], None],
    ) -> None:
        self._announce = announce
        self._rank = rank
        self._timeout = timeout
        self._clock = clock
        self._done = done
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rendezvous", daemon=True)
        self.result: RendezvousResult | None = None
        """The result, once everyone is there."""
        self.failure = ""
        """Why there will be none."""

    def start(self) -> None:
        """Begins to announce. Idempotent."""
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            self.result = self._wait_for_peers()
        except ResoluteError as failure:
            self.failure = f"the containers of the run did not find each other: {failure}"
        finally:
            self._done()

    def _wait_for_peers(self) -> RendezvousResult | None:
        deadline = self._clock.monotonic() + self._timeout
        missing: Sequence[int] = ()
        backoff = Backoff(longest=2.0)
        while True:
            try:
                response = self._announce()
            except UnavailableError:
                response = RendezvousResponse(missing_ranks=missing)
            if response.complete:
                return _result_of(response, self._rank)
            missing = tuple(response.missing_ranks)
            if self._clock.monotonic() >= deadline:
                raise DeadlineError(_timeout_message(missing, self._timeout))
            if self._stop.wait(backoff.failed()):
                return None


def _result_of(response: RendezvousResponse, rank: int) -> RendezvousResult:
    info = RendezvousInfo(
        [peer.address for peer in response.peers], rank, [peer.slot_count for peer in response.peers]
    )
    return RendezvousResult(info=info, ports=tuple(tuple(peer.ports) for peer in response.peers))


def _timeout_message(missing: Sequence[int], timeout: float) -> str:
    who = ", ".join(map(str, missing)) or "the control plane itself"
    return f"after {timeout:g} s these ranks were missing: {who}; look at their machines and logs"
