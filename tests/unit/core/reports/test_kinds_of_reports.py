"""What becomes of every kind of report: none ends a training, and all raise in the call if asked to."""

from __future__ import annotations

import contextlib
import logging
import math
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import determined as det
from resolute import core
from resolute.api.experiments.v1.allocations_service_pb2 import ReportExitRequest
from resolute.contracts.spool.format import Report, Row
from resolute.contracts.values import MAX_DEPTH, to_value
from resolute.core import DummyTrainContext, Strictness, TrainContext
from resolute.core.reporting.trial_record import LocalTrialRecord
from resolute.core.tensorboard import LocalTensorboard
from resolute.errors import InvalidArgumentError
from resolute.spool.delivery.requests import RunIdentity, reports_request
from resolute.spool.omissions import LEFT_OUT_SUFFIX, read_left_out
from resolute.spool.reader import SpoolReader
from resolute.spool.report_writer import ReportWriter

LARGE = "x" * (10 << 20)


def nested(depth: int) -> Any:
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


def endless() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["again"] = value
    return value


class Stubborn:
    """A value of a library that does not say what it is."""

    def item(self) -> float:
        raise RuntimeError("on another device")


@dataclass(frozen=True)
class Kind:
    """One value beside a good one, and what is recorded of it."""

    value: Any
    recorded: Any = None
    warning: str = ""
    """Part of the one warning; nothing if all is recorded."""


KINDS = {
    "float": Kind(0.5, 0.5),
    "whole number": Kind(3, 3),
    "2**53 + 1": Kind(2**53 + 1, 2**53 + 1),
    "2**63 - 1": Kind(2**63 - 1, 2**63 - 1),
    "12e18": Kind(12 * 10**18, 1.2e19),
    "2**70": Kind(2**70, float(2**70)),
    "-2**70": Kind(-(2**70), -float(2**70)),
    "401 digits": Kind(10**400, warning="'odd' is a whole number of 1329 bits"),
    "True": Kind(True, True),
    "text": Kind("text", "text"),
    "half a surrogate pair": Kind("a\ud800", "a?"),
    "infinity": Kind(math.inf, math.inf),
    "numpy.float16": Kind(np.float16(0.5), 0.5),
    "numpy.float32": Kind(np.float32(0.5), 0.5),
    "numpy.int64": Kind(np.int64(3), 3),
    "numpy.uint64": Kind(np.uint64(2**64 - 1), float(2**64)),
    "numpy.bool": Kind(np.bool_(True), True),
    "array": Kind(np.array([1.0, 2.0]), [1.0, 2.0]),
    "array without dimensions": Kind(np.array(1.5), 1.5),
    "empty array": Kind(np.array([]), []),
    "tuple": Kind((1, 2.0), [1, 2.0]),
    "list of mappings": Kind([{"a": 1}], [{"a": 1}]),
    "empty mapping": Kind({}, {}),
    "20 lists": Kind(nested(20), nested(20)),
    "200 lists": Kind(nested(200), warning="nests deeper than"),
    "mapping in itself": Kind(endless(), warning="nests deeper than"),
    "complex": Kind(1j, warning="'odd' is a complex"),
    "numpy.complex64": Kind(np.complex64(1j), warning="'odd' is a complex"),
    "bytes": Kind(b"png", warning="'odd' is a bytes"),
    "object": Kind(object(), warning="'odd' is a object"),
    "set": Kind({1}, warning="'odd' is a set"),
    "function": Kind(len, warning="'odd' is a builtin_function"),
    "date": Kind(np.datetime64("2020-01-01"), warning="'odd' is a date"),
    "list with an object": Kind([1.0, object()], warning=r"'odd\[1\]' is a object"),
    "does not say": Kind(Stubborn(), warning="'odd' is a Stubborn that does not give its value: on another"),
    "10 MB of text": Kind(LARGE, warning="'odd' has 10485762 bytes; put large data into a"),
    "10 MB of numbers": Kind(np.arange(2.0**21), warning="'odd' has .* bytes; put large data"),
}


@dataclass(frozen=True)
class Wrong:
    """A call of which nothing, or a part, is recorded."""

    call: Callable[[TrainContext], None]
    warning: str
    recorded: dict[str, Any] | None = None


def validate(train: TrainContext) -> None:
    train.report_validation_metrics(1, {"good": 1.0, "odd": None})


def train_with(name: Any) -> Callable[[TrainContext], None]:
    return lambda train: train.report_training_metrics(1, {"good": 1.0, name: 2.0})


def at(steps: Any) -> Callable[[TrainContext], None]:
    return lambda train: train.report_training_metrics(steps, {"good": 1.0})


def into(group: Any) -> Callable[[TrainContext], None]:
    return lambda train: train.report_metrics(group, 1, {"good": 1.0})


def what(metrics: Any) -> Callable[[TrainContext], None]:
    return lambda train: train.report_training_metrics(1, metrics)


GOOD = {"good": 1.0}
WRONG = {
    "None in a validation": Wrong(validate, "odd is None", GOOD),
    "a number as name": Wrong(train_with(1), "a metric is named 1; names must be text", GOOD),
    "an empty name": Wrong(train_with(""), "has 0 characters", GOOD),
    "a long name": Wrong(train_with("x" * 501), "has 501 characters", GOOD),
    "half a surrogate pair in a name": Wrong(train_with("\ud800"), "use valid Unicode", GOOD),
    "one name twice": Wrong(what({"a.b": 1.0, "a": {"b": 2.0}}), "two metrics are named 'a.b'", {"a.b": 1.0}),
    "a fraction of a step": Wrong(at(1.5), "of type float and no whole number"),
    "NaN steps": Wrong(at(math.nan), "no whole number"),
    "steps as text": Wrong(at("1"), "of type str and no whole number"),
    "2**63 steps": Wrong(at(2**63), "steps_completed needs more than 64 bits"),
    "1e300 steps": Wrong(at(1e300), "steps_completed needs more than 64 bits"),
    "a dot in the group": Wrong(into("a.b"), "a name without a dot"),
    "an empty group": Wrong(into(""), "a name without a dot"),
    "a number as group": Wrong(into(5), "a name without a dot"),
    "a long group": Wrong(into("x" * 501), "at most 500 characters of Unicode"),
    "half a surrogate pair in a group": Wrong(into("half \ud800"), "at most 500 characters of Unicode"),
    "a list of metrics": Wrong(what([1.0]), "metrics are a list"),
    "too many metrics": Wrong(what({f"metric {i:0400}": 1.0 for i in range(6000)}), "put large data into"),
}


@contextlib.contextmanager
def context(
    spool: Path, strictness: Strictness = Strictness.WARN, rank: int = 0
) -> Iterator[tuple[TrainContext, ReportWriter]]:
    writer = ReportWriter(spool, omissions=strictness.omissions())
    yield (
        TrainContext(reporter=writer, record=LocalTrialRecord(), tensorboard=LocalTensorboard(), rank=rank),
        writer,
    )
    writer.close()


def recorded(writer: ReportWriter) -> list[dict[str, Any]]:
    """What the service is sent of each report."""
    chunk = SpoolReader(writer.path).peek(1 << 24)
    reports_request(RunIdentity("trial", 1, "experiment"), source="rank0", chunk=chunk)
    found: list[dict[str, Any]] = []
    for record in chunk.records():
        if isinstance(record, Row):
            found.append(dict(zip(record.schema.names, record.values, strict=True)))
        else:
            assert isinstance(record, Report)
            found.append(dict(record.values))
    return found


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_value_is_recorded_or_left_out_with_a_warning(
    kind: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with context(tmp_path) as (train, writer):
        train.report_training_metrics(1, {"odd": kind.value, "good": 1.0})
        train.report_training_metrics(2, {"good": 2.0})
        expected = {"good": 1.0} if kind.warning else {"odd": kind.recorded, "good": 1.0}
        assert recorded(writer) == [expected, {"good": 2.0}]
    assert len(caplog.records) == bool(kind.warning)
    if kind.warning:
        assert caplog.records[0].getMessage().startswith("left out of the reports: ")
        strict = context(tmp_path, Strictness.RAISE)
        with strict as (train, _), pytest.raises(InvalidArgumentError, match=kind.warning):
            train.report_training_metrics(1, {"odd": kind.value})


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_call_leaves_out_what_is_wrong_with_a_warning(
    wrong: Wrong, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with context(tmp_path) as (train, writer):
        wrong.call(train)
        assert recorded(writer) == ([] if wrong.recorded is None else [wrong.recorded])
    (record,) = caplog.records
    assert wrong.warning in record.getMessage()
    strict, errors = context(tmp_path, Strictness.RAISE), (InvalidArgumentError, RuntimeError, ValueError)
    with strict as (train, _), pytest.raises(errors, match=re.escape(wrong.warning)):
        wrong.call(train)


def test_each_kind_is_one_line_and_a_count_at_the_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with context(tmp_path) as (train, writer):
        metrics: dict[Any, Any] = {"good": 1.0, "odd": 1j, 7: 1.0}
        for step in range(50):
            train.report_training_metrics(step, metrics)
        assert len(recorded(writer)) == 50
    assert [record.getMessage() for record in caplog.records][2:] == [
        "49 more left out of the reports: values of type complex",
        "49 more left out of the reports: names that are no text or have a wrong length",
    ]


@pytest.mark.parametrize("content", ['{"odd": Infinity, "good": 2}', '{"half \\ud800": 2}', "[]", "[" * 5000])
def test_counts_that_a_script_has_damaged_keep_no_run_from_its_end(tmp_path: Path, content: str) -> None:
    (tmp_path / f"rank0{LEFT_OUT_SUFFIX}").write_text(content)
    (tmp_path / f"rank1{LEFT_OUT_SUFFIX}").write_text('{"whole reports": 3}')
    left_out = read_left_out(tmp_path)
    assert "whole reports (3)" in left_out
    ReportExitRequest(left_out=left_out)


def test_reports_of_another_rank_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    message = "only rank 0 reports; this is rank 1: its reports are left out"
    with context(tmp_path, rank=1) as (train, writer):
        train.report_training_metrics(1, {"loss": 1.0})
        train.report_validation_metrics(1, {"loss": 1.0})
        assert recorded(writer) == []
    assert [message in record.getMessage() for record in caplog.records] == [True, False]
    strict = context(tmp_path, Strictness.RAISE, rank=1)
    with strict as (train, _), pytest.raises(RuntimeError, match="this is rank 1"):
        train.report_training_metrics(1, {"loss": 1.0})


def test_a_report_after_the_end_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with context(tmp_path) as (train, writer):
        pass
    train.report_training_metrics(1, {"loss": 1.0})
    train.report_training_metrics(1, {"text": "a"})
    assert recorded(writer) == []
    assert "after the context was closed" in caplog.text


def test_threads_report_beside_each_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with context(tmp_path) as (train, writer):

        def report() -> None:
            for step in range(100):
                train.report_training_metrics(step, {"good": 1.0, "odd": 1j})

        threads = [threading.Thread(target=report) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(recorded(writer)) == 400
    assert len(caplog.records) == 2
    assert caplog.records[1].getMessage().startswith("399 more")


def test_without_init_reports_are_checked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    DummyTrainContext().report_training_metrics(1, {"good": 1.0, "odd": 1j})
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


@pytest.mark.parametrize("strictness", [Strictness.WARN, Strictness.STRICT])
def test_the_config_asks_for_more_than_the_script(strictness: Strictness) -> None:
    assert Strictness.of_config({"reports": "strict"}, least=strictness) is Strictness.STRICT
    assert Strictness.of_config({"reports": "warn"}, least=strictness) is strictness
    assert Strictness.of_config({}, least=Strictness.RAISE) is Strictness.RAISE


def test_under_determined_a_wrong_report_raises_in_the_call(tmp_path: Path) -> None:
    with det.core.init(checkpoint_storage=str(tmp_path)) as ours:
        with pytest.raises(InvalidArgumentError, match="'odd' is a complex"):
            ours.train.report_training_metrics(1, {"odd": 1j})
        with pytest.raises(RuntimeError, match="accuracy is None"):
            ours.train.report_validation_metrics(1, {"accuracy": None})
    with core.init(checkpoint_storage=str(tmp_path)) as ours:
        ours.train.report_training_metrics(1, {"odd": 1j})


def test_the_deepest_value_that_is_recorded_can_be_sent(tmp_path: Path) -> None:
    to_value(nested(MAX_DEPTH))
    with context(tmp_path) as (train, writer):
        train.report_training_metrics(1, {"odd": nested(MAX_DEPTH)})
        assert recorded(writer) == [{"odd": nested(MAX_DEPTH)}]
