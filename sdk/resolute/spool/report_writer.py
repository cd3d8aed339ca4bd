"""Records reports of metrics: every ``report_*`` of a training script calls this."""

from __future__ import annotations

import contextlib
import json
import logging
import operator
import os
import struct
import time as time_module
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import (
    METRICS_SUFFIX,
    ROW_HEADER,
    RecordType,
    Report,
    Schema,
    encode_report,
    encode_schema,
    frame,
)
from resolute.errors import DeadlineError, InvalidArgumentError
from resolute.spool.segment import SEGMENT_BYTES, Segment, SpoolWriter, check_size
from resolute.spool.values import as_numbers, flatten

LIMIT_VARIABLE = "RESOLUTE_SPOOL_LIMIT"
"""Names, in the environment, the most bytes that may wait for their service."""
DEFAULT_LIMIT = 1 << 30
REFUSALS_SUFFIX = ".refusals"
_POLL_SECONDS = 0.05
_WARN_SECONDS = 60.0
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
        directory: Where spools lie; it must exist.
        name: Begins the source's name, such as ``rank0``.
        limit: Most bytes that may wait for the service; above it a report waits until some have arrived.
        segment_bytes: Size at which the next file is begun.
        clock: Tells when reports were made, and deadlines.
        sleep: Waits some seconds.
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
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._sleep = sleep
        self._layouts: dict[tuple[str, tuple[str, ...]], tuple[int, struct.Struct]] = {}
        super().__init__(directory, name=name, suffix=METRICS_SUFFIX, segment_bytes=segment_bytes)

    def report(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        """Appends one report.

        Args:
            group: ``training``, ``validation`` or any other name.
            steps: Steps completed.
            metrics: Values by name.

        Raises:
            InvalidArgumentError: A value cannot be recorded; or the service refused an earlier report.
            ForkedProcessError: The writer belongs to the parent process.
            QuotaError: The report is too large, or the disk is full.
        """
        self.check_process()
        self.raise_refusals()
        if self._current.size > self._limit or self._older:
            self._wait_for_space()
        self._record(group, operator.index(steps), metrics)

    def _record(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        now = self._clock.time()
        names = tuple(metrics)
        numbers = as_numbers(metrics.values())
        if numbers is None or not all(type(name) is str for name in names):
            metrics = flatten(metrics)
            names = tuple(metrics)
            numbers = as_numbers(metrics.values())
        if numbers is None:
            self.append(encode_report(Report(group=group, steps=steps, time=now, values=metrics)))
            return
        with self._lock:
            self._rotate_if_full()
            schema_id, layout = self._layouts.get((group, names)) or self._add_schema(group, names)
            self._current.append(frame(layout.pack(RecordType.ROW, schema_id, steps, now, *numbers)))

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
            InvalidArgumentError: The service refused a report.
        """
        self.check_process()
        goals = [(segment, segment.size) for segment in self.segments if segment.unacknowledged]
        self._wait(
            lambda: all(segment.ack.offset >= size for segment, size in goals),
            timeout=timeout,
            purpose="for reports to arrive at the metrics service",
        )
        self.raise_refusals()

    def raise_refusals(self) -> None:
        """Raises what the service said to reports that it refused since the last call.

        Raises:
            InvalidArgumentError: It refused some; they are not kept.
        """
        messages = self._new_refusals(self._current)
        for segment in self._older:
            arrived = not segment.unacknowledged
            messages += self._new_refusals(segment)
            if arrived:
                self.forget(segment)
        if messages:
            raise InvalidArgumentError("the cluster refused a report: " + "; ".join(messages))

    def _new_refusals(self, segment: Segment) -> list[str]:
        count = segment.ack.refusals
        seen = segment.refusals_seen
        if count == seen:
            return []
        segment.refusals_seen = count
        return [refusal["message"] for refusal in read_refusals(segment.path)[seen:count]]

    def _wait_for_space(self) -> None:
        if self.unacknowledged > self._limit:
            self._wait(
                lambda: self.unacknowledged <= self._limit,
                timeout=None,
                purpose=f"for room: more than {self._limit} bytes of reports have not arrived",
            )

    def _wait(self, done: Callable[[], bool], *, timeout: float | None, purpose: str) -> None:
        start = warned = self._clock.monotonic()
        while not done():
            now = self._clock.monotonic()
            if timeout is not None and now - start >= timeout:
                raise DeadlineError(f"waited {timeout:g} s {purpose}; is the service up?")
            if now - warned >= _WARN_SECONDS:
                warned = now
                _log.warning("waiting since %.0f s %s", now - start, purpose)
            self._sleep(_POLL_SECONDS)


def read_refusals(spool: Path) -> list[dict[str, Any]]:
    """Returns what the service refused of a spool, oldest first: ``sequence`` and ``message`` of each.

    A sender that was killed says the same again, and a full disk may tear a line: each counts once, and a
    torn one not at all.
    """
    try:
        text = spool.with_suffix(REFUSALS_SUFFIX).read_text()
    except FileNotFoundError:
        return []
    found: dict[int, dict[str, Any]] = {}
    for line in text.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            refusal = json.loads(line)
            found.setdefault(refusal["sequence"], refusal)
    return list(found.values())


def refusals_of(directory: Path) -> Iterator[str]:
    """Says why single reports of the spools in a directory were not kept."""
    for path in sorted(directory.glob(f"*{REFUSALS_SUFFIX}")):
        yield from (str(refusal["message"]) for refusal in read_refusals(path))


def append_refusals(spool: Path, refusals: list[dict[str, Any]]) -> None:
    """Keeps what the service refused, for the writer of the spool to raise."""
    with spool.with_suffix(REFUSALS_SUFFIX).open("a") as file:
        file.write("".join(json.dumps(refusal) + "\n" for refusal in refusals))
