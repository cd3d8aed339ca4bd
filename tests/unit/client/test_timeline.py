"""The phases of a run follow from recorded times, are drawn to scale, and are sent as spans."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from support.daemons.otlp import collector

from resolute.api.checkpoints.v1 import checkpoint_pb2
from resolute.api.experiments.v1 import experiment_pb2, run_pb2, trial_pb2, trial_transition_pb2
from resolute.api.preemption.v1 import signal_pb2
from resolute.cli.insight.trace import bar
from resolute.client.insight.spans import send
from resolute.client.insight.timeline import RecordedTimes, Timeline, timeline
from resolute.client.schema import convert
from resolute.client.schema.transitions import TransitionRecord, transition
from resolute.contracts.tracing import otlp_exporter
from resolute.errors import UnavailableError

ZERO = datetime(2026, 1, 2, tzinfo=timezone.utc)


def at(seconds: float) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(ZERO + timedelta(seconds=seconds))
    return moment


def changed(seconds: float, event: str, run: int, **fields: object) -> TransitionRecord:
    message = trial_transition_pb2.TrialTransition(time=at(seconds), event=event, run=run)
    for name, value in fields.items():
        setattr(message, name, value)
    return transition(message)


TRANSITIONS = (
    changed(1, "CREATE", 0),
    changed(4, "PLACE", 1, detail="until now: no slot is free"),
    changed(5, "CONFIRM_RUNNING", 1),
    changed(20, "PREEMPT", 1, signal_reason=signal_pb2.SIGNAL_REASON_SCHEDULER),
    changed(22, "RUN_RESUMES", 1),
    changed(30, "PLACE", 2),
    changed(31, "CONFIRM_RUNNING", 2),
)


def recorded(number: int) -> RecordedTimes:
    runs = {
        1: run_pb2.Run(
            run=1,
            start_time=at(4),
            initialize_time=at(7.5),
            end_time=at(22),
            slot_ids=[0, 3],
            outcome=run_pb2.RUN_OUTCOME_PREEMPTED,
            trace_id="1" * 32,
        ),
        2: run_pb2.Run(run=2, trace_id="2" * 32, start_time=at(30)),
    }
    trial = convert.trial(trial_pb2.Trial(number=12, state=trial_pb2.TRIAL_STATE_RUNNING, runs=runs.values()))
    checkpoint = checkpoint_pb2.Checkpoint(
        checkpoint_id="c1",
        state=checkpoint_pb2.CHECKPOINT_STATE_COMPLETED,
        run=1,
        steps_completed=7,
        create_time=at(20.5),
        commit_time=at(21),
    )
    experiment = experiment_pb2.Experiment(
        create_time=at(0), state=experiment_pb2.EXPERIMENT_STATE_ACTIVE, number=3
    )
    return RecordedTimes(
        experiment=convert.experiment(experiment),
        trial=trial,
        run=trial.runs[number - 1],
        transitions=TRANSITIONS,
        first_report=ZERO + timedelta(seconds=9) if number == 1 else None,
        checkpoints=[convert.checkpoint(checkpoint)],
    )


def spans_of(found: Timeline) -> list[tuple[str, float, float | None]]:
    return [
        (
            phase.name,
            (phase.start - ZERO).total_seconds(),
            None if phase.end is None else (phase.end - ZERO).total_seconds(),
        )
        for phase in found.phases
    ]


def test_a_preempted_run_has_every_phase() -> None:
    found = timeline(recorded(1))
    assert spans_of(found) == [
        ("submit", 0, 1),
        ("queue", 1, 4),
        ("start", 4, 5),
        ("imports", 5, 7.5),
        ("first report", 7.5, 9),
        ("train", 9, 20),
        ("preemption", 20, 22),
        ("checkpoint", 20.5, 21),
        ("end", 22, 22),
    ]
    details = {phase.name: phase.detail for phase in found.phases}
    assert details["queue"] == "until now: no slot is free"
    assert details["start"] == "slots 0, 3"
    assert details["preemption"] == "scheduler"
    assert details["checkpoint"] == "c1 after 7 steps"
    assert details["end"] == "preempted"


def test_a_run_that_goes_on_has_an_open_phase_and_waited_since_the_one_before() -> None:
    found = timeline(recorded(2))
    assert spans_of(found) == [("queue", 22, 30), ("start", 30, 31), ("first report", 31, None)]
    # Of before the records of transitions: what is not known is left out.
    unknown = timeline(replace(recorded(1), transitions=()))
    assert [phase.name for phase in unknown.phases] == ["submit", "start", "checkpoint", "end"]


def test_phases_are_drawn_to_scale_and_never_vanish() -> None:
    found = timeline(recorded(1))
    drawn = {phase.name: bar(phase, found, now=ZERO, width=22) for phase in found.phases}
    assert drawn["queue"] == "·███" + "·" * 18
    assert drawn["train"] == "·" * 9 + "█" * 11 + "··"
    assert drawn["end"] == "·" * 21 + "█"
    assert {len(line) for line in drawn.values()} == {22}
    goes_on = timeline(recorded(2))
    now = ZERO + timedelta(seconds=44)
    assert bar(goes_on.phases[-1], goes_on, now=now, width=22) == "·" * 9 + "█" * 13


def test_spans_arrive_at_the_endpoint_under_one_trace_that_is_the_same_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = timeline(recorded(1))
    with collector(200) as (address, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        sent = [send(found, otlp_exporter(), cluster_id="c") for _ in range(2)]
        other = send(timeline(recorded(2)), otlp_exporter(), cluster_id="c")
    assert sent[0] == sent[1] != other
    requests = [ExportTraceServiceRequest.FromString(body) for body in bodies]
    first, second = (request.resource_spans[0].scope_spans[0].spans for request in requests[:2])
    assert [span.span_id for span in first] == [span.span_id for span in second]
    assert {span.trace_id.hex() for span in first} == {sent[0]}
    root, *phases = first
    assert root.name == "run 12.1"
    assert [span.name for span in phases] == [phase.name for phase in found.phases]
    assert {span.parent_span_id for span in phases} == {root.span_id}
    assert (root.end_time_unix_nano - root.start_time_unix_nano) == 22 * 10**9


def test_a_refusal_of_the_endpoint_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with collector(400) as (address, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with pytest.raises(UnavailableError, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
            send(timeline(recorded(1)), otlp_exporter(), cluster_id="c")
