"""The sender: whatever fails in between, everything arrives once and in order."""

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.services.stand_ins.spool_receiver import IDENTITY, Clock, Receiver, pump_all, sender_to, take_all

from resolute import errors
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as logs
from resolute.api.metrics.v1 import metrics_service_pb2 as metrics
from resolute.api.searcher.v1 import searcher_service_pb2 as searcher
from resolute.contracts.spool.format import Line, Schema, Stdtype
from resolute.spool.delivery.requests import RunIdentity, level_of, reports_request
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import IngestResult, LineDelivery, ReportDelivery
from resolute.spool.line_splitter import MAX_LINE
from resolute.spool.line_writer import LineWriter
from resolute.spool.reader import Chunk, Rows, SpoolReader
from resolute.spool.report_writer import ReportWriter, append_refusals, read_refusals, refusals_of


def test_reports_arrive_in_columns_once_and_are_acknowledged(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    for step in range(10):
        writer.report("training", step, {"loss": step / 2, "accuracy": 0.5})
    writer.report("validation", 10, {"loss": 1.0, "note": "good"})

    pump_all(sender_to(receiver, tmp_path, clock), clock)

    assert receiver.calls == 1
    assert receiver.all_rows()[:2] == [
        ("training", 0, {"loss": 0.0, "accuracy": 0.5}),
        ("training", 1, {"loss": 0.5, "accuracy": 0.5}),
    ]
    assert receiver.all_rows()[-1] == ("validation", 10, {"loss": 1.0, "note": "good"})
    writer.flush(timeout=0)


def test_one_block_holds_all_reports_of_the_same_names() -> None:
    first, second = Schema("training", ("loss",)), Schema("validation", ("loss",))
    rows = [Rows((first, second)[i % 2], [i], [0.0], (float(i),)) for i in range(6)]
    request = reports_request(IDENTITY, source="s", chunk=Chunk(5, [*rows], ends=list(range(6))))
    assert [(block.group, list(block.sequences)) for block in request.blocks] == [
        ("training", [5, 7, 9]),
        ("validation", [6, 8, 10]),
    ]
    assert (request.first_sequence, request.count) == (5, 6)


def test_an_outage_delays_and_loses_nothing(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    sender = sender_to(receiver, tmp_path, clock)
    receiver.fail_before = lambda: errors.UnavailableError("away") if clock.now < 1800 else None
    for step in range(100):
        writer.report("training", step, {"loss": 1.0})

    pump_all(sender, clock)

    assert 1800 <= clock.now < 1810
    assert receiver.calls < 1000
    assert [steps for _, steps, _ in receiver.all_rows()] == list(range(100))


def test_a_lost_answer_doubles_nothing(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    answers = iter([errors.DeadlineError("lost"), errors.UnavailableError("lost"), None])
    receiver.fail_after = lambda: next(answers, None)
    for step in range(10):
        writer.report("training", step, {"loss": 1.0})

    pump_all(sender_to(receiver, tmp_path, clock), clock)

    assert [steps for _, steps, _ in receiver.all_rows()] == list(range(10))


def test_a_new_sender_goes_on_where_the_old_one_was_killed(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    writer.report("training", 0, {"loss": 1.0})
    pump_all(sender_to(receiver, tmp_path, clock), clock)
    writer.report("training", 1, {"loss": 2.0})

    pump_all(sender_to(receiver, tmp_path, clock), clock)

    assert [steps for _, steps, _ in receiver.all_rows()] == [0, 1]
    assert receiver.calls == 2


def test_a_service_that_was_restored_from_a_backup_gets_everything_it_lacks(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    for step in range(10):
        writer.report("training", step, {"loss": 1.0})
    sender = sender_to(receiver, tmp_path, clock)
    pump_all(sender, clock)
    (source,) = receiver.rows
    receiver.rows[source] = receiver.rows[source][:4]
    receiver.next[source] = 4

    writer.report("training", 10, {"loss": 1.0})
    pump_all(sender, clock)

    assert [steps for _, steps, _ in receiver.all_rows()] == list(range(11))


def test_a_batch_that_is_taken_in_part_goes_on_behind_that_part(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    receiver.take_at_most = 7
    for step in range(20):
        writer.report("training", step, {"loss": 1.0})
    pump_all(sender_to(receiver, tmp_path, clock), clock)
    assert [steps for _, steps, _ in receiver.all_rows()] == list(range(20))


def test_refused_reports_reach_the_writer_and_the_others_arrive(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    receiver.refuse = lambda values: "too high" if values["loss"] == 3 else ""
    for step in range(6):
        writer.report("training", step, {"loss": float(step)})

    pump_all(sender_to(receiver, tmp_path, clock), clock)

    assert [steps for _, steps, _ in receiver.all_rows()] == [0, 1, 2, 4, 5]
    with pytest.raises(errors.InvalidArgumentError, match="too high"):
        writer.confirm()


def test_a_refusal_that_was_noted_twice_counts_once_and_a_torn_one_not_at_all(tmp_path: Path) -> None:
    spool = tmp_path / "rank0.metrics"
    note = {"sequence": 3, "message": "a conflict"}
    append_refusals(spool, [note, note, {"sequence": 5, "message": "a bad name"}])
    with spool.with_suffix(".refusals").open("a") as file:
        file.write('{"sequence": 7, "mess')
    assert [refusal["sequence"] for refusal in read_refusals(spool)] == [3, 5]
    assert list(refusals_of(tmp_path)) == ["a conflict", "a bad name"]


def test_a_report_that_no_service_takes_is_found_and_left_out(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    poisoned: list[metrics.IngestReportsRequest] = []

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        if any(13 in block.steps for block in request.blocks):
            poisoned.append(request)
            raise errors.InvalidArgumentError("step 13 brings bad luck")
        return receiver.ingest(request)

    for step in range(40):
        writer.report("training", step, {"loss": 1.0})
    sender = SpoolSender(tmp_path, ReportDelivery(IDENTITY, ingest=ingest, validate=take_all), clock=clock)
    pump_all(sender, clock)

    assert [steps for _, steps, _ in receiver.all_rows()] == [step for step in range(40) if step != 13]
    assert len(poisoned) < 15
    assert read_refusals(writer.path) == [{"sequence": 13, "message": "step 13 brings bad luck"}]


def test_a_spool_of_which_even_a_skip_is_refused_does_not_hold_up_the_others(tmp_path: Path) -> None:
    bad, good = ReportWriter(tmp_path, name="bad"), ReportWriter(tmp_path, name="good")
    receiver, clock = Receiver(), Clock()
    refusal: list[errors.ResoluteError] = []

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        if request.source.startswith("bad") and refusal:
            raise refusal[0]
        return receiver.ingest(request)

    bad.report("training", 1, {"loss": 1.0})
    sender = SpoolSender(tmp_path, ReportDelivery(IDENTITY, ingest=ingest, validate=take_all), clock=clock)
    for step, failure in enumerate(
        (errors.InvalidArgumentError("no"), errors.QuotaError("full"), errors.UnimplementedError("unknown")),
        2,
    ):
        refusal[:] = [failure]
        good.report("training", step, {"loss": 2.0})
        for _ in range(20):
            sender.pump()
            clock.now += 60.0
        assert [row[1] for row in receiver.all_rows()] == list(range(2, step + 1)), failure

    refusal.clear()
    pump_all(sender, clock)
    assert sorted(row[1] for row in receiver.all_rows()) == [1, 2, 3, 4]


def test_spools_of_a_deleted_trial_are_given_up(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    receiver.fail_before = lambda: errors.NotFoundError("deleted")
    writer.report("training", 1, {"loss": 1.0})
    pump_all(sender_to(receiver, tmp_path, clock), clock)
    writer.flush(timeout=0)


def test_files_that_have_arrived_wholly_are_removed(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path, segment_bytes=1000), Receiver(), Clock()
    sender = sender_to(receiver, tmp_path, clock)
    for step in range(100):
        writer.report("training", step, {"loss": 1.0})
        if step % 10 == 0:
            pump_all(sender, clock)
    pump_all(sender, clock)
    assert [path.name for path in tmp_path.glob("*.metrics")] == [writer.path.name]
    assert sorted(steps for _, steps, _ in receiver.all_rows()) == list(range(100))

    writer.close()
    pump_all(sender, clock)
    assert not list(tmp_path.glob("*.metrics"))


def test_a_torn_end_does_not_keep_a_drain_waiting(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    for step in range(3):
        writer.report("training", step, {"loss": 1.0})
    with writer.path.open("ab") as file:
        file.write(b"\x25\0\0\0torn")
    sender = sender_to(receiver, tmp_path, clock)

    pump_all(sender, clock)

    assert len(receiver.all_rows()) == 3
    assert sender.drained()


def test_a_strange_file_does_not_stop_the_others(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    (tmp_path / "aaa.metrics").write_bytes(b"something else entirely")
    writer.report("training", 1, {"loss": 1.0})
    pump_all(sender_to(receiver, tmp_path, clock), clock)
    assert len(receiver.all_rows()) == 1


def test_batches_grow_while_the_service_is_fast_and_shrink_when_it_is_slow(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    for step in range(60_000):
        writer.report("training", step, {f"metric{i}": 1.0 for i in range(5)})
    sizes: list[int] = []
    seconds = 0.0

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        sizes.append(request.ByteSize())
        clock.now += seconds
        return receiver.ingest(request)

    sender = SpoolSender(tmp_path, ReportDelivery(IDENTITY, ingest=ingest, validate=take_all), clock=clock)
    for _ in range(3):
        sender.pump()
    seconds = 5.0
    pump_all(sender, clock)

    assert sizes[0] < sizes[2]
    assert max(sizes) < 1.5 * (1 << 20)
    assert sizes[-2] < sizes[0]


def test_validations_reach_a_search_that_they_drive(tmp_path: Path) -> None:
    identity = RunIdentity("trial", 2, "experiment", searcher_metric="loss", time_metric="batches")
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    passed: list[searcher.ReportValidationsRequest] = []

    def validate(request: searcher.ReportValidationsRequest) -> searcher.ReportValidationsResponse:
        passed.append(request)
        return searcher.ReportValidationsResponse()

    writer.report("training", 1, {"loss": 1.0, "batches": 10})
    writer.report("validation", 1, {"loss": 0.5, "batches": 10})
    writer.report("validation", 2, {"loss": 0.25, "note": "text"})

    sender = SpoolSender(
        tmp_path, ReportDelivery(identity, ingest=receiver.ingest, validate=validate), clock=clock
    )
    pump_all(sender, clock)

    (request,) = passed
    assert (request.trial_id, request.run, request.source) == ("trial", 2, writer.path.stem)
    first, second = request.validations
    assert (first.sequence, first.metric, first.time_metric) == (1, 0.5, 10)
    assert (second.sequence, second.metric, second.HasField("time_metric")) == (2, 0.25, False)


def test_a_validation_that_the_search_refuses_is_told_to_the_script(tmp_path: Path) -> None:
    identity = RunIdentity("trial", 2, "experiment", searcher_metric="loss", time_metric="batches")
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    writer.report("validation", 1, {"loss": 0.5, "batches": 10})
    writer.report("validation", 2, {"loss": 0.25})

    def validate(request: searcher.ReportValidationsRequest) -> searcher.ReportValidationsResponse:
        refusal = searcher.ReportValidationsResponse.Refusal(
            sequence=1, message="validation 1 lacks 'batches'"
        )
        return searcher.ReportValidationsResponse(refusals=[refusal])

    delivery = ReportDelivery(identity, ingest=receiver.ingest, validate=validate)
    pump_all(SpoolSender(tmp_path, delivery, clock=clock), clock)

    assert len(receiver.all_rows()) == 2
    with pytest.raises(errors.InvalidArgumentError, match="lacks 'batches'"):
        writer.confirm()


def test_history_is_taken_even_when_the_search_listens_to_a_later_run(tmp_path: Path) -> None:
    identity = RunIdentity("trial", 1, "experiment", searcher_metric="loss", time_metric="batches")
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    writer.report("validation", 1, {"loss": 0.5, "batches": 10})

    def validate(request: searcher.ReportValidationsRequest) -> searcher.ReportValidationsResponse:
        raise errors.RunSupersededError("run 2 has taken over")

    delivery = ReportDelivery(identity, ingest=receiver.ingest, validate=validate)
    pump_all(SpoolSender(tmp_path, delivery, clock=clock), clock)

    writer.flush(timeout=0)


def test_validations_are_sent_again_until_the_search_has_them(tmp_path: Path) -> None:
    identity = RunIdentity("trial", 1, "experiment", searcher_metric="loss", time_metric="batches")
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    writer.report("validation", 1, {"loss": 0.5, "batches": 10})
    answers = iter([errors.UnavailableError("away"), None])
    seen = []

    def validate(request: searcher.ReportValidationsRequest) -> searcher.ReportValidationsResponse:
        seen.append(request)
        if (failure := next(answers)) is not None:
            raise failure
        return searcher.ReportValidationsResponse()

    delivery = ReportDelivery(identity, ingest=receiver.ingest, validate=validate)
    pump_all(SpoolSender(tmp_path, delivery, clock=clock), clock)

    assert len(seen) == 2
    assert len(receiver.all_rows()) == 1


def test_lines_carry_rank_severity_stream_and_time(tmp_path: Path) -> None:
    requests: list[logs.IngestLinesRequest] = []

    def ingest(request: logs.IngestLinesRequest) -> logs.IngestLinesResponse:
        requests.append(request)
        return logs.IngestLinesResponse(next_sequence=request.first_sequence + len(request.lines.messages))

    writer, clock = LineWriter(tmp_path), Clock()
    writer.append_lines(
        [
            Line(1.5, Stdtype.STDERR, b"[rank=3] WARNING: [12] root: careful\n"),
            Line(2.0, Stdtype.STDOUT, b"plain \xff text"),
            Line(3.0, Stdtype.PLATFORM, b"the supervisor says so"),
            Line(4.0, Stdtype.STDERR, b"[rank=99999999999] is none"),
            Line(5.0, Stdtype.STDERR, b"[rank=" + b"9" * 5000 + b"]"),
        ]
    )
    pump_all(SpoolSender(tmp_path, LineDelivery(IDENTITY, ingest=ingest), clock=clock), clock)

    lines = requests[0].lines
    written = [lines.writers[index] for index in lines.writer_indexes]
    assert list(lines.messages) == [
        "WARNING: [12] root: careful",
        "plain � text",
        "the supervisor says so",
        "[rank=99999999999] is none",
        f"[rank={'9' * 5000}]",
    ]
    assert list(lines.ranks) == [3, -1, -1, -1, -1]
    assert list(lines.levels) == [line_pb2.LEVEL_WARNING, *[line_pb2.LEVEL_UNSPECIFIED] * 4]
    assert [time // 1_000_000 for time in lines.times] == [1500, 2000, 3000, 4000, 5000]
    assert [writer.stdtype for writer in written] == ["stderr", "stdout", "", "stderr", "stderr"]
    assert [writer.origin for writer in written] == ["task", "task", "supervisor", "task", "task"]
    assert not SpoolReader(writer.path).peek().complete


def test_a_line_stays_under_its_limit_even_if_its_bytes_are_no_text(tmp_path: Path) -> None:
    sent: list[str] = []

    def ingest(request: logs.IngestLinesRequest) -> logs.IngestLinesResponse:
        sent.extend(request.lines.messages)
        return logs.IngestLinesResponse(next_sequence=request.first_sequence + len(request.lines.messages))

    writer, clock = LineWriter(tmp_path), Clock()
    writer.append_lines([Line(1.0, Stdtype.STDOUT, b"\xff" * MAX_LINE)])
    pump_all(SpoolSender(tmp_path, LineDelivery(IDENTITY, ingest=ingest), clock=clock), clock)
    assert len(sent[0].encode()) <= MAX_LINE


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("INFO: [1] root: text", line_pb2.LEVEL_INFO),
        ("[ERROR] text", line_pb2.LEVEL_ERROR),
        ("\x1b[31mCRITICAL: text", line_pb2.LEVEL_CRITICAL),
        ("ERROR rate falls", line_pb2.LEVEL_UNSPECIFIED),
        ("no level", line_pb2.LEVEL_UNSPECIFIED),
        ("", line_pb2.LEVEL_UNSPECIFIED),
    ],
)
def test_severity_is_what_the_line_begins_with(text: str, level: "line_pb2.Level.ValueType") -> None:
    assert level_of(text) == level


def test_the_next_batch_is_made_while_the_service_works_on_one(tmp_path: Path) -> None:
    writer, receiver, clock = ReportWriter(tmp_path), Receiver(), Clock()
    for step in range(100):
        writer.report("training", step, {"loss": float(step)})
    writer.close()
    packed = [threading.Event() for _ in range(100)]

    class Watched(ReportDelivery):
        def pack(self, source: str, chunk: Chunk) -> Callable[[], IngestResult]:
            packed[sum(event.is_set() for event in packed)].set()
            return super().pack(source, chunk)

    def ingest(request: metrics.IngestReportsRequest) -> metrics.IngestReportsResponse:
        if receiver.calls == 0:
            assert packed[1].wait(60)
        return receiver.ingest(request)

    sender = SpoolSender(tmp_path, Watched(IDENTITY, ingest=ingest, validate=take_all), clock=clock)
    sender._batch = 1000
    pump_all(sender, clock)
    sender.close()
    assert [row[1] for row in receiver.all_rows()] == list(range(100))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), reports=st.integers(0, 300), writers=st.integers(1, 3))
def test_everything_arrives_once_and_in_order_whatever_fails(
    tmp_path_factory: pytest.TempPathFactory, seed: int, reports: int, writers: int
) -> None:
    rng = random.Random(seed)
    directory, receiver, clock = tmp_path_factory.mktemp("spool"), Receiver(), Clock()
    failures = [
        errors.UnavailableError("x"),
        errors.DeadlineError("x"),
        errors.InternalError("x"),
        None,
        None,
        None,
    ]
    receiver.fail_before = receiver.fail_after = lambda: rng.choice(failures)
    receiver.take_at_most = rng.choice([1, 10, 10**9])
    sources = [
        ReportWriter(directory, name=f"rank{i}", segment_bytes=rng.choice([500, 10**9]))
        for i in range(writers)
    ]
    sender = sender_to(receiver, directory, clock)
    # Small batches are made ahead of the answer to the one before.
    sender._batch = rng.choice([50, 500, 1 << 20])
    made: dict[str, list[int]] = {f"rank{i}": [] for i in range(writers)}
    for step in range(reports):
        index = rng.randrange(writers)
        sources[index].report(rng.choice(["training", "validation"]), step, {rng.choice("abc"): float(step)})
        made[f"rank{index}"].append(step)
        if rng.random() < 0.1:
            clock.now += 1
            sender.pump()
        if rng.random() < 0.02:
            sender.close()
            sender = sender_to(receiver, directory, clock)
            sender._batch = rng.choice([50, 500, 1 << 20])
    for source in sources:
        source.close()
    pump_all(sender, clock)

    for name, steps in made.items():
        found = [
            row[1]
            for source in sorted(receiver.rows)
            if source.startswith(name)
            for row in receiver.rows[source]
        ]
        assert found == steps
