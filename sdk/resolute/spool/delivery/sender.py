"""Sends spools to their services exactly once, in order, and without a time limit."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path

from resolute import errors
from resolute.contracts.calls.backoff import Backoff
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.spool.delivery.pipeline import BatchPipeline
from resolute.spool.delivery.services import Delivery, IngestResult
from resolute.spool.delivery.source import SpoolSource
from resolute.spool.reader import Chunk

MAX_BATCH = 1 << 20
MIN_BATCH = 16 << 10
"""Bytes of a batch: it grows while the service answers fast and shrinks while it is slow."""
_FAST_SECONDS = 0.25
_SLOW_SECONDS = 2.0
_FIRST_BACKOFF = 0.1
_MAX_BACKOFF = 5.0
STUCK_AFTER_FAILURES = 6
"""Consecutive failures after which the end of a run no longer waits for a spool."""
_FIRST_SOURCE_BACKOFF, _MAX_SOURCE_BACKOFF = 0.2, 60.0
_OUTAGES = (errors.UnavailableError, errors.AuthError, errors.AbortedError)
"""Failures that concern all spools alike and pass by themselves."""
_log = logging.getLogger("resolute.spool")


class SpoolSender:
    """Sends every spool of one kind in one directory.

    It never sleeps: its owner calls ``pump`` repeatedly, see ``SenderThread``. If there is a backlog, it
    packs the next batch while the call with the current one waits in a thread of its own.

    Args:
        directory: Directory of the spools. New spools are sent too.
        delivery: Sends batches to the service, see ``ReportDelivery`` and ``LineDelivery``.
        clock: Clock for pauses after failures and for the speed of the service.
        jitter: Returns random numbers in [0, 1), so that many senders do not retry at the same time.
        refused: Called with the reason why the service refuses a record.
    """

    def __init__(
        self,
        directory: Path,
        delivery: Delivery,
        *,
        clock: Clock = SYSTEM_CLOCK,
        jitter: Callable[[], float] = random.random,
        refused: Callable[[str], None] = lambda _message: None,
    ) -> None:
        self._refused = refused
        self._directory = directory
        self._delivery = delivery
        self._clock = clock
        self._jitter = jitter
        self._backoff = Backoff(first=_FIRST_BACKOFF, longest=_MAX_BACKOFF, jitter=jitter)
        self._pipeline = BatchPipeline(delivery)
        self._sources: dict[str, SpoolSource] = {}
        self._finished: set[str] = set()
        self._unopened: set[str] = set()
        self._batch = MAX_BATCH // 4
        self._retry_at = 0.0
        self._logged_failure = ""

    def pump(self) -> bool:
        """Sends the next batch of each spool.

        Returns:
            Whether to call again at once: something was sent, and more may wait.
        """
        if self._clock.monotonic() < self._retry_at:
            return False
        self._discover()
        moved = False
        for source in list(self._sources.values()):
            if self._clock.monotonic() < source.retry_at:
                continue
            try:
                moved |= self._send_next(source)
            except _OUTAGES as failure:
                self._back_off(failure)
                return False
            except Exception as failure:  # noqa: BLE001 - a failure of one spool must not hold up the others
                self._back_off_source(source, failure)
        return moved

    @property
    def stuck(self) -> bool:
        """Whether every spool with a backlog has failed repeatedly, here or at the service.

        They are still tried again, in growing intervals, and arrive when the service has been repaired.
        """
        waiting = [source for source in self._sources.values() if source.waiting()]
        return bool(waiting) and all(source.backoff.failures >= STUCK_AFTER_FAILURES for source in waiting)

    @property
    def seconds_until_retry(self) -> float:
        """Seconds until a failed call is repeated; zero while the service answers."""
        return max(self._retry_at - self._clock.monotonic(), 0.0)

    def end_pause(self) -> None:
        """Lets the next ``pump`` repeat a failed call at once: its service is known to be there again."""
        self._retry_at = 0.0

    def drained(self) -> bool:
        """Returns whether every complete record has arrived. Call it once the writers have ended.

        What is left then is unreadable: the torn end of a crash.
        """
        self._discover()
        return not self._unopened and not any(source.has_more() for source in self._sources.values())

    def close(self) -> None:
        """Closes the files. What has not arrived stays for the next sender."""
        self._pipeline.close()
        for source in self._sources.values():
            source.close()
        self._sources.clear()

    def _discover(self) -> None:
        for path in sorted(self._directory.glob(f"*{self._delivery.suffix}")):
            if path.stem not in self._sources and path.stem not in self._finished:
                self._open(path)

    def _open(self, path: Path) -> None:
        try:
            self._sources[path.stem] = SpoolSource(path, self._source_backoff())
            self._unopened.discard(path.stem)
        except errors.DataLossError as failure:
            _log.error("%s; it is left as it is and not sent", failure)
            self._finished.add(path.stem)
        except errors.QuotaError as failure:
            if path.stem not in self._unopened:
                _log.warning("%s cannot be sent for now, will try again: %s", path.stem, failure)
            self._unopened.add(path.stem)

    def _source_backoff(self) -> Backoff:
        return Backoff(first=_FIRST_SOURCE_BACKOFF, longest=_MAX_SOURCE_BACKOFF, jitter=self._jitter)

    def _send_next(self, source: SpoolSource) -> bool:
        chunk = self._peek(source)
        if chunk is None or chunk.end == source.reader.offset:
            return False
        if len(chunk) and not self._deliver(source, chunk):
            return True
        if not len(chunk):
            source.advance(chunk, None)
        if source.complete:
            self._finish(source)
        return True

    def _peek(self, source: SpoolSource) -> Chunk | None:
        if source.next is not None and source.follows(source.next.chunk):
            return source.next.chunk
        try:
            return source.reader.peek(source.limit or self._batch)
        except errors.DataLossError as failure:
            _log.error("%s; the rest of it is not sent", failure)
            self._finish(source, keep=True)
            return None

    def _deliver(self, source: SpoolSource, chunk: Chunk) -> bool:
        """Sends a chunk; False if the source was moved instead and must be read again."""
        begin = self._clock.monotonic()
        try:
            answer = self._send(source, chunk)
        except errors.NotFoundError as failure:
            self._discard(source, failure)
            return False
        except errors.FailedPreconditionError as failure:
            expected = failure.metadata.get("expected_sequence", "")
            if not expected.isdecimal():
                raise
            source.move_to(int(expected))
            return False
        except (errors.InvalidArgumentError, errors.QuotaError) as failure:
            self._isolate_refused_record(source, chunk, failure)
            return False
        if answer.next_sequence <= chunk.first_sequence:
            raise errors.UnavailableError(f"the service accepted nothing of {source.name}")
        source.backoff.succeeded()
        self._adapt_batch_size(self._clock.monotonic() - begin, full=source.limit == 0)
        self._refuse(source, [(refusal.sequence, refusal.message) for refusal in answer.refusals])
        source.advance(chunk, answer.next_sequence - chunk.first_sequence)
        source.limit = source.limit * 2 if source.limit * 2 < self._batch else 0
        return True

    def _send(self, source: SpoolSource, chunk: Chunk) -> IngestResult:
        batch, source.next = source.next, None
        if batch is None or batch.chunk is not chunk:
            batch = self._pipeline.pack(source.name, chunk)
        if source.limit or chunk.end >= source.reader.size():
            return batch.send()
        answer, source.next = self._pipeline.send(batch, source.name, source.reader, most=self._batch)
        return answer

    def _isolate_refused_record(
        self, source: SpoolSource, chunk: Chunk, failure: errors.ResoluteError
    ) -> None:
        """Finds the record that the service refuses by bisection, and continues without it."""
        if len(chunk) > 1:
            source.limit = max((chunk.ends[(len(chunk.ends) - 1) // 2]) - source.reader.offset, 1)
            return
        self._delivery.skip(source.name, chunk.first_sequence)
        self._refuse(source, [(chunk.first_sequence, str(failure))])
        source.advance(chunk, 1)
        source.limit = 0

    def _refuse(self, source: SpoolSource, refusals: list[tuple[int, str]]) -> None:
        source.refuse(refusals)
        for _, message in refusals:
            self._refused(message)

    def _adapt_batch_size(self, seconds: float, *, full: bool) -> None:
        self._backoff.succeeded()
        self._logged_failure = ""
        if seconds > _SLOW_SECONDS:
            self._batch = max(self._batch // 2, MIN_BATCH)
        elif seconds < _FAST_SECONDS and full:
            self._batch = min(self._batch * 2, MAX_BATCH)

    def _back_off(self, failure: errors.ResoluteError) -> None:
        if isinstance(failure, errors.DeadlineError):
            self._batch = max(self._batch // 2, MIN_BATCH)
        self._retry_at = self._clock.monotonic() + self._backoff.failed()
        if type(failure).__name__ != self._logged_failure:
            self._logged_failure = type(failure).__name__
            _log.warning(
                "cannot send %s for now, will try again: %s", self._delivery.suffix.lstrip("."), failure
            )

    def _back_off_source(self, source: SpoolSource, failure: Exception) -> None:
        """Pauses one spool; longer with every failure in a row."""
        source.retry_at = self._clock.monotonic() + source.backoff.failed()
        if source.backoff.failures == 1:
            defect = not isinstance(failure, errors.ResoluteError) or isinstance(
                failure, errors.InternalError
            )
            _log.warning(
                "cannot send %s for now, will try again: %s",
                source.name,
                failure,
                exc_info=failure if defect else None,
            )
        elif source.backoff.failures == STUCK_AFTER_FAILURES:
            _log.error(
                "%s could not be sent in %d attempts; it stays on disk and will be tried again: %s",
                source.name,
                source.backoff.failures,
                failure,
            )

    def _discard(self, source: SpoolSource, failure: errors.NotFoundError) -> None:
        _log.warning("%s is not sent, its trial was deleted: %s", source.name, failure)
        source.ack.advance(source.reader.size())
        self._finish(source, keep=True)

    def _finish(self, source: SpoolSource, *, keep: bool = False) -> None:
        source.close()
        if not keep:
            source.path.unlink(missing_ok=True)
        self._finished.add(source.name)
        del self._sources[source.name]
