"""The machine probe: asks a machine's metadata server whether the machine will be taken away soon."""

from __future__ import annotations

import http.client
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from resolute.contracts.clock import Clock

_MOST_BYTES = 64 << 10
"""Of an answer so much is read."""
_CHUNK_BYTES = 4 << 10
_MOST_DELAYS = 4
"""An answer that comes drop by drop may take so many timeouts."""
_log = logging.getLogger("resolute.supervisor")


@dataclass(frozen=True, kw_only=True)
class MetadataProbe:
    """The request, and the answer that means that the machine will be taken away."""

    url: str
    """Plain HTTP; redirects and proxies are not followed."""
    headers: Mapping[str, str]
    """Headers of the request."""
    status: int
    """Status of that answer."""
    contains: str
    """Text in that answer; empty for any."""
    interval: float
    """Seconds between two questions."""
    timeout: float
    """Seconds that each step of an answer may take."""

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> MetadataProbe | None:
        """Reads what a config names by ``resources.preemptible.metadata``; None if it names none."""
        preemptible = config.get("resources", {}).get("preemptible") or {}
        metadata = preemptible.get("metadata") if preemptible.get("enabled") else None
        return None if metadata is None else cls(**metadata)

    def ask(self, *, clock: Clock) -> bool:
        """Asks once.

        Args:
            clock: Measures how long an answer takes.

        Returns:
            Whether the machine goes away.

        Raises:
            OSError: There was no answer in time.
            http.client.HTTPException: The answer is not HTTP.
        """
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port or http.client.HTTP_PORT, timeout=self.timeout
        )
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("GET", path, headers=dict(self.headers))
            response = connection.getresponse()
            if response.status != self.status:
                return False
            deadline = clock.monotonic() + _MOST_DELAYS * self.timeout
            return not self.contains or self.contains.encode() in _body(response, clock, deadline)
        finally:
            connection.close()


def _body(response: http.client.HTTPResponse, clock: Clock, deadline: float) -> bytes:
    body = b""
    while part := response.read1(min(_CHUNK_BYTES, _MOST_BYTES - len(body))):
        body += part
        if clock.monotonic() >= deadline:
            raise TimeoutError("the answer takes too long")
    return body


class MachineProbe:
    """A thread that asks until the end of the run.

    If the first answer already announces the end of the machine, the run stays: the next run might start on
    the same machine, and one run after the other would end before it began.

    Args:
        probe: The request; None to ask nothing.
        notice: Called in the thread once the end of the machine is announced.
        log_line: Adds a line to the log of the trial.
        clock: Measures how long answers take.
    """

    def __init__(
        self,
        probe: MetadataProbe | None,
        *,
        notice: Callable[[], None],
        log_line: Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._probe, self._notice, self._log_line, self._clock = probe, notice, log_line, clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="machine-probe", daemon=True)
        self._warned = False

    def start(self) -> None:
        """Begins to ask, if there is something to ask."""
        if self._probe is not None:
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread; a question that is under way is given its timeout."""
        self._stop.set()
        if self._probe is not None and self._thread.ident is not None:
            self._thread.join(self._probe.timeout)

    def _watch(self) -> None:
        assert self._probe is not None
        stayed = False
        while not self._stop.is_set():
            answer = self._ask(self._probe)
            if answer and stayed:
                self._log_line(f"{self._probe.url} says that this machine is about to be taken away")
                self._notice()
                return
            if answer:
                self._warn(
                    f"{self._probe.url} announced from the beginning that this machine is about "
                    "to be taken away, and the run goes on; see status and contains of "
                    "resources.preemptible.metadata"
                )
            stayed = stayed or answer is False
            self._stop.wait(self._probe.interval)

    def _ask(self, probe: MetadataProbe) -> bool | None:
        """Asks once; None without an answer."""
        try:
            return probe.ask(clock=self._clock)
        except (OSError, http.client.HTTPException) as failure:
            if not self._stop.is_set():
                self._warn(
                    f"{probe.url} does not answer ({failure or type(failure).__name__}), so that the run "
                    "gets no notice of its machine's end from there; see resources.preemptible.metadata"
                )
            return None

    def _warn(self, text: str) -> None:
        if self._warned:
            _log.info("%s", text)
        else:
            self._warned = True
            self._log_line(f"WARNING: {text}")
