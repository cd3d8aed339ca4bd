"""Reporting: what it takes, when it waits, what it raises."""

import enum
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from resolute.contracts.spool.ack import AckFile
from resolute.contracts.spool.format import Report, Row
from resolute.errors import DeadlineError, ForkedProcessError, InvalidArgumentError
from resolute.spool.omissions import Raised
from resolute.spool.reader import SpoolReader
from resolute.spool.report_writer import ReportWriter, append_refusals, limit_from_environment
from resolute.spool.values import flatten


class StoppedClock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_sleep: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


class Color(enum.Enum):
    RED = 1


class Tensor:
    """Stands for a tensor of a library that is not installed everywhere: ``item`` is what they share."""

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        return self._value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.float64(0.25), 0.25),
        (np.bool_(True), True),
        (np.array([1, 2]), [1, 2]),
        (Tensor(1.5), 1.5),
        (Color.RED, "RED"),
        (True, True),
        (None, None),
        ("text", "text"),
        ([1, {"a": np.float64(2.0)}], [1, {"a": 2.0}]),
        ({}, {}),
    ],
)
def test_values_of_libraries_become_plain(value: Any, expected: Any) -> None:
    (plain,) = flatten({"metric": value}, Raised()).values()
    assert plain == expected
    assert type(plain) is type(expected)


def test_nested_names_are_joined_by_dots() -> None:
    assert flatten({"a": {"b": {"c": 1}}, "d": 2}, Raised()) == {"a.b.c": 1, "d": 2}


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({1: 2.0}, "a metric is named 1; names must be text"),
        ({"a.b": 1, "a": {"b": 2}}, r"two metrics are named 'a\.b'"),
        ({"a": object()}, "metric 'a' is a object; only numbers"),
        ({"a": b"bytes"}, "metric 'a' is a bytes"),
    ],
)
def test_what_cannot_be_recorded_is_named(metrics: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        flatten(metrics, Raised())


def test_a_torch_tensor_is_a_number(tmp_path: Path) -> None:
    import torch

    writer = ReportWriter(tmp_path)
    writer.report("training", 1, {"loss": torch.tensor(0.5), "weights": torch.tensor([1.0, 2.0])})
    (record,) = SpoolReader(writer.path).peek().records()
    assert isinstance(record, Report)
    assert record.values == {"loss": 0.5, "weights": [1.0, 2.0]}


def test_steps_of_numpy_are_taken(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    writer.report("training", np.int64(7), {"loss": 1.0})
    (record,) = SpoolReader(writer.path).peek().records()
    assert isinstance(record, Row)
    assert record.steps == 7


def test_a_report_waits_while_too_much_has_not_arrived(tmp_path: Path) -> None:
    clock = StoppedClock()
    writer = ReportWriter(tmp_path, limit=1000, clock=clock, sleep=clock.sleep)
    while writer.unacknowledged <= 1000:
        writer.report("training", 1, {"loss": 1.0})
    assert clock.now == 1000.0

    clock.on_sleep = lambda: (
        AckFile.of(writer.path).advance(writer.path.stat().st_size) if clock.now > 1100 else None
    )
    writer.report("training", 2, {"loss": 1.0})

    assert 1100 < clock.now < 1101


def test_what_waits_in_older_files_counts_too(tmp_path: Path) -> None:
    clock = StoppedClock()
    writer = ReportWriter(tmp_path, limit=2000, segment_bytes=500, clock=clock, sleep=clock.sleep)
    while writer.unacknowledged <= 2000:
        writer.report("training", 1, {"loss": 1.0})

    def arrive() -> None:
        for segment in writer.segments:
            segment.ack.advance(segment.size)

    clock.on_sleep = arrive
    writer.report("training", 2, {"loss": 1.0})
    assert clock.now > 1000.0

    writer.report("training", 3, {"loss": 1.0})
    assert len(writer.segments) <= 2


def test_flush_returns_when_everything_has_arrived(tmp_path: Path) -> None:
    clock = StoppedClock()
    writer = ReportWriter(tmp_path, clock=clock, sleep=clock.sleep)
    writer.flush(timeout=0)
    writer.report("training", 1, {"loss": 1.0})
    size = writer.path.stat().st_size
    clock.on_sleep = lambda: AckFile.of(writer.path).advance(size)
    writer.flush(timeout=60)
    assert clock.now < 1001


def test_flush_gives_up_in_time(tmp_path: Path) -> None:
    clock = StoppedClock()
    writer = ReportWriter(tmp_path, clock=clock, sleep=clock.sleep)
    writer.report("training", 1, {"loss": 1.0})
    with pytest.raises(DeadlineError, match=r"waited 60 s for reports to arrive at the metrics service"):
        writer.flush(timeout=60)
    assert 1060 <= clock.now < 1061


def test_a_refusal_is_raised_once_and_only_where_it_is_asked_for(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    writer.report("training", 1, {"loss": 1.0})
    append_refusals(writer.path, [{"sequence": 0, "message": "loss at step 1 has another value"}])
    AckFile.of(writer.path).add_refusals(1)

    writer.report("training", 2, {"loss": 1.0})
    AckFile.of(writer.path).advance(writer.path.stat().st_size)
    writer.flush(timeout=0)
    with pytest.raises(InvalidArgumentError, match="refused a report: loss at step 1 has another value"):
        writer.confirm()
    writer.confirm()


def test_a_refusal_in_an_older_file_is_not_missed(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path, segment_bytes=300)
    for step in range(10):
        writer.report("training", step, {"loss": 1.0})
    oldest = writer.segments[0]
    append_refusals(oldest.path, [{"sequence": 0, "message": "not this one"}])
    oldest.ack.add_refusals(1)
    oldest.ack.advance(oldest.size)

    writer.report("training", 10, {"loss": 1.0})
    assert oldest not in writer.segments
    for segment in writer.segments:
        segment.ack.advance(segment.size)
    with pytest.raises(InvalidArgumentError, match="not this one"):
        writer.confirm()


def test_threads_may_report_at_once(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path, segment_bytes=5000)

    def report(name: str) -> None:
        for step in range(200):
            writer.report(name, step, {name: 1.0})

    threads = [threading.Thread(target=report, args=(f"m{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    count = 0
    for path in tmp_path.glob(writer.pattern):
        reader = SpoolReader(path)
        while (chunk := reader.peek()).end > reader.offset:
            assert all(
                record.schema.names == (record.schema.group,)
                for record in chunk.records()
                if isinstance(record, Row)
            )
            count += len(chunk)
            reader.take(chunk)
    assert count == 800


def _report_in_child(writer: ReportWriter, results: "multiprocessing.queues.Queue[str]") -> None:
    try:
        writer.report("training", 1, {"loss": 1.0})
    except ForkedProcessError as failure:
        results.put(str(failure))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_must_not_report(tmp_path: Path) -> None:
    writer = ReportWriter(tmp_path)
    fork = multiprocessing.get_context("fork")
    results = fork.Queue()
    child = fork.Process(target=_report_in_child, args=(writer, results))
    child.start()
    assert "forked off the one that called core.init" in results.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    assert not len(SpoolReader(writer.path).peek())


@pytest.mark.parametrize("text", ["0", "-1", "much", "1.5"])
def test_a_limit_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("RESOLUTE_SPOOL_LIMIT", text)
    with pytest.raises(InvalidArgumentError, match="RESOLUTE_SPOOL_LIMIT"):
        limit_from_environment()
