"""Records metric reports: every ``report_*`` of a training script calls this."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import struct
import time as time_module
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import (
    MAX_PAYLOAD,
    METRICS_SUFFIX,
    ROW_HEADER,
    Media,
    RecordType,
    Report,
    Schema,
    encode_report,
    encode_schema,
    frame,
)
from resolute.errors import DeadlineError, InvalidArgumentError, QuotaError
from resolute.spool.doorbell import ring
from resolute.spool.media_writer import MediaWriter
from resolute.spool.omissions import CountedWarnings, Omissions
from resolute.spool.segment import SEGMENT_BYTES, Segment, SpoolWriter, check_size
from resolute.spool.values import as_numbers, flatten

LIMIT_VARIABLE = "RESOLUTE_SPOOL_LIMIT"
"""Names, in the environment, the most bytes that may wait for their service."""
DEFAULT_LIMIT = 1 << 30
REFUSALS_SUFFIX = ".refusals"
_FIRST_POLL_SECONDS, _POLL_SECONDS = 0.001, 0.05
"""Between two looks at what has arrived: a service that is there answers within milliseconds."""
_WARN_SECONDS = 60.0
_MAX_VALUE = MAX_PAYLOAD // 2
"""Bytes above which a single value is left out of a report that is too large."""
_MOST_REFUSALS = 100
"""Refusals that are remembered until somebody asks."""
_log = logging.getLogger("resolute.spool")


def limit_from_environment() -> int:
    """Returns the most bytes that may wait for their service: ``RESOLUTE_SPOOL_LIMIT``, or 1 GiB.

    Raises:
        InvalidArgumentError: The variable holds no whole number above zero.
    """
    text = os.environ.get(LIMIT_VARIABLE, "")
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal() or not int(text):
        raise InvalidArgumentError(f"{LIMIT_VARIABLE} is {text!r}; a number of bytes above zero was expected")
    return int(text)


class ReportWriter(SpoolWriter):
    """Appends reports to a spool.

    Args:
        directory: Directory of the spools; it must exist.
        name: Prefix of the source's name, such as ``rank0``.
        limit: Most bytes that may wait for the service. Above it a report waits until earlier ones have
            arrived.
        segment_bytes: Size in bytes at which the next file begins.
        clock: Clock for the times of reports and for deadlines.
        sleep: Waits some seconds.
        omissions: Receives values that cannot be recorded. By default they are counted and logged.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "rank0",
        limit: int = DEFAULT_LIMIT,
        segment_bytes: int = SEGMENT_BYTES,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], None] = time_module.sleep,
        omissions: Omissions | None = None,
    ) -> None:
        self.omissions = omissions or CountedWarnings(_log.warning)
        self._limit = limit
        self._clock = clock
        self._sleep = sleep
        self._unconfirmed: deque[str] = deque(maxlen=_MOST_REFUSALS)
        self._layouts: dict[tuple[str, tuple[str, ...]], tuple[int, struct.Struct]] = {}
        self._directory, self._name = directory, name
        self._media: MediaWriter | None = None
        super().__init__(directory, name=name, suffix=METRICS_SUFFIX, segment_bytes=segment_bytes)

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        """Appends one report, without what cannot be recorded of it.

        Args:
            group: ``training``, ``validation`` or any other name.
            steps: Steps completed, in 64 bits.
            metrics: Values by name.

        Raises:
            ForkedProcessError: The writer belongs to the parent process.
            QuotaError: The disk is full.
        """
        self.check_process()
        if self._current.size > self._limit or self._older:
            self._wait_for_space()
        try:
            self._record(group, steps, metrics)
        except InvalidArgumentError as error:
            self.omissions.leave_out("whole reports", error)

    def log_media(self, media: Media) -> None:
        """Appends one image, table and so on to a spool of its own, which is begun with the first.

        Raises:
            ForkedProcessError: The writer belongs to the parent process.
        """
        self.check_process()
        if self._media is None:
            try:
                self._media = self._open_media()
            except (InvalidArgumentError, QuotaError) as failure:
                self.omissions.leave_out("media that cannot be written", failure)
                return
        self._media.log(media)

    def _open_media(self) -> MediaWriter:
        if self._closed:
            raise InvalidArgumentError("media came after the context was closed; log them before its end")
        return MediaWriter(self._directory, name=self._name, limit=self._limit, omissions=self.omissions)

    def _record(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        now = self._clock.time()
        names = tuple(metrics)
        numbers = as_numbers(metrics.values())
        if numbers is None or (group, names) not in self._layouts:
            # Names are checked here: those of a layout were already.
            flat = flatten(metrics, self.omissions)
            if metrics and not flat:
                return
            names = tuple(flat)
            numbers = as_numbers(flat.values())
            if numbers is None:
                self._append_report(Report(group=group, steps=steps, time=now, values=flat))
                return
        with self._lock:
            self._rotate_if_full()
            schema_id, layout = self._layouts.get((group, names)) or self._add_schema(group, names)
            payload = layout.pack(RecordType.ROW, schema_id, steps, now, *numbers)
            check_size(payload)
            self._current.append(frame(payload))

    def _append_report(self, report: Report) -> None:
        payload = encode_report(report)
        if len(payload) > MAX_PAYLOAD:
            small = {name: value for name, value in report.values.items() if not self._too_large(name, value)}
            payload = encode_report(replace(report, values=small))
        self.append(payload)

    def _too_large(self, name: str, value: Any) -> bool:
        size = len(json.dumps(value, ensure_ascii=False).encode())
        if size > _MAX_VALUE:
            message = f"metric {name!r} has {size} bytes; put large data into a checkpoint"
            self.omissions.leave_out("values that are too large", InvalidArgumentError(message))
        return size > _MAX_VALUE

    def _add_schema(self, group: str, names: tuple[str, ...]) -> tuple[int, struct.Struct]:
        schema_id = len(self._layouts)
        payload = encode_schema(schema_id, Schema(group=group, names=names))
        check_size(payload)
        self._current.append(frame(payload))
        layout = struct.Struct(f"{ROW_HEADER.format}{len(names)}d")
        self._layouts[group, names] = (schema_id, layout)
        return schema_id, layout

    def _start_segment(self) -> None:
        self._layouts.clear()

    def flush(self, timeout: float | None = None) -> None:
        """Waits until every report so far has arrived.

        Args:
            timeout: Seconds to wait at most; None waits for as long as it takes.

        Raises:
            DeadlineError: Some reports have not arrived in time. They are not lost.
        """
        self.check_process()
        goals = [(segment, segment.size) for segment in self.segments if segment.unacknowledged]
        self._wait(
            lambda: all(segment.ack.offset >= size for segment, size in goals),
            timeout=timeout,
            purpose="for reports to arrive at the metrics service",
        )

    def confirm(self) -> None:
        """Waits until every report so far has arrived, and raises what was refused since the last call.

        Raises:
            InvalidArgumentError: A service refused some; they are not kept.
        """
        self.flush()
        self._collect_refusals()
        messages = list(self._unconfirmed)
        self._unconfirmed.clear()
        if messages:
            raise InvalidArgumentError("the cluster refused a report: " + "; ".join(messages))

    def close(self) -> None:
        """Ends the source, and says how much was left out. What has not arrived stays for the sender.

        On a full disk the files get no END record, which a sender does without: a training that is done does
        not fail for it.
        """
        self.omissions.finish()
        if self._media is not None:
            with contextlib.suppress(QuotaError):
                self._media.close()
        with contextlib.suppress(QuotaError):
            super().close()

    def _collect_refusals(self) -> None:
        """Takes in what was refused, and drops files that have arrived."""
        self._unconfirmed.extend(self._new_refusals(self._current))
        for segment in self._older:
            arrived = not segment.unacknowledged
            self._unconfirmed.extend(self._new_refusals(segment))
            if arrived:
                self.forget(segment)

    def _new_refusals(self, segment: Segment) -> list[str]:
        count = segment.ack.refusals
        seen = segment.refusals_seen
        if count == seen:
            return []
        segment.refusals_seen = count
        return [refusal["message"] for refusal in read_refusals(segment.path)[seen:count]]

    def _wait_for_space(self) -> None:
        self._collect_refusals()
        if self.unacknowledged > self._limit:
            self._wait(
                lambda: self.unacknowledged <= self._limit,
                timeout=None,
                purpose=f"for room: more than {self._limit} bytes of reports have not arrived",
            )

    def _wait(self, done: Callable[[], bool], *, timeout: float | None, purpose: str) -> None:
        start = warned = self._clock.monotonic()
        pause = _FIRST_POLL_SECONDS
        if not done():
            ring(self._directory)
        while not done():
            now = self._clock.monotonic()
            if timeout is not None and now - start >= timeout:
                raise DeadlineError(f"waited {timeout:g} s {purpose}; is the service up?")
            if now - warned >= _WARN_SECONDS:
                warned = now
                _log.warning("waiting since %.0f s %s", now - start, purpose)
            self._sleep(pause)
            pause = min(pause * 2, _POLL_SECONDS)


def read_refusals(spool: Path) -> list[dict[str, Any]]:
    """Returns what the service refused of a spool, oldest first: ``sequence`` and ``message`` of each.

    A sender that was killed says the same again, and a full disk may tear a line: each counts once, and a
    torn one not at all.
    """
    try:
        text = spool.with_suffix(REFUSALS_SUFFIX).read_text()
    except FileNotFoundError:
        return []
    refusals: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            refusal = json.loads(line)
            refusals.setdefault(refusal["sequence"], refusal)
    return list(refusals.values())


def refusals_of(directory: Path) -> Iterator[str]:
    """Says why single reports of the spools in a directory were not kept."""
    for path in sorted(directory.glob(f"*{REFUSALS_SUFFIX}")):
        yield from (str(refusal["message"]) for refusal in read_refusals(path))


def append_refusals(spool: Path, refusals: list[dict[str, Any]]) -> None:
    """Keeps what the service refused, for the writer of the spool to raise."""
    with spool.with_suffix(REFUSALS_SUFFIX).open("a") as file:
        file.write("".join(json.dumps(refusal) + "\n" for refusal in refusals))
