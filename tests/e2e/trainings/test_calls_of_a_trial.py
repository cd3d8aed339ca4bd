"""The calls that one trial leads to are those of the table in docs/sizing.md, and no others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from support.clusters.embedded import embedded
from support.daemons.otlp import collector
from support.pages.commands import ROOT
from support.waiting import wait_until

CONFIG = """
name: counted
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
"""
SCRIPT = """
from resolute import core

with core.init() as context:
    for operation in context.searcher.operations():
        context.train.set_status("training")
        context.train.report_training_metrics(1, {"loss": 0.6})
        context.train.report_validation_metrics(1, {"loss": 0.5})
        operation.report_progress(1)
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "weights").write_text("1")
        operation.report_completed(0.5)
print("trained")
"""
BEGIN, END = "CreateExperiment", "CloseTrialLogs"
BESIDE = {"GetExperiment", "WatchExperiments", "FollowSignalChanges"}
"""What the commands of this test ask for, and the one stream from service to service for all trials."""
UNSEEN = {"ReportMachineUsage", "WatchSignals"}
"""A run of seconds reports no usage, and a stream that its reader cancels leaves no span."""
WAKE_UPS = {"ListTrialValidations", "ListLastSteps", "ListUnrankedCheckpoints"}
"""Named below the table."""

_EXACT = re.compile(r"(\d+)(?: an? (?:checkpoint|operation|call))?")
"""How often, where that depends neither on time nor on how changes fall together."""


def documented() -> Iterator[tuple[str, str]]:
    """Yields each call of the table, and how often it is made."""
    section = (
        (ROOT / "docs" / "sizing.md").read_text().split("## What one trial asks for")[1].split("\n## ")[0]
    )
    for line in section.splitlines():
        if line.startswith("| `"):
            calls, how_often, _ = line.strip("|").split("|")
            yield from ((call, how_often.strip()) for call in re.findall(r"`(\w+)`", calls))
    assert {call for call in WAKE_UPS if f"`{call}`" in section} == WAKE_UPS


def test_a_trial_makes_the_calls_that_the_table_names(tmp_path: Path) -> None:
    messages = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)

    def calls(bodies: Iterable[bytes]) -> list[str]:
        """The calls that have arrived, in the order of their beginning."""
        spans = [
            span
            for body in list(bodies)
            for resource in messages.ExportTraceServiceRequest.FromString(body).resource_spans
            if any(each.value.string_value == "resolute" for each in resource.resource.attributes)
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return [span.name for span in sorted(spans, key=lambda span: int(span.start_time_unix_nano))]

    with collector(200) as (address, bodies):
        with embedded(tmp_path / "home", slots=1, OTEL_EXPORTER_OTLP_ENDPOINT=address) as cluster:
            cluster.det("e", "create", "config.yaml", ".", cwd=tmp_path)
            cluster.det("e", "wait", "1", timeout=300)
            wait_until(lambda: END in calls(bodies), what="the spans of the end")
        # Streams are told of when they end, with their cluster.
        found = calls(bodies)
    made = Counter(found[found.index(BEGIN) :])
    table = dict(documented())
    assert set(made) - BESIDE - WAKE_UPS <= set(table), "docs/sizing.md does not name them"
    assert set(table) - set(made) <= UNSEEN, "docs/sizing.md names what nobody calls"
    exact = {call: _EXACT.fullmatch(often) for call, often in table.items()}
    wanted = {call: int(match[1]) for call, match in exact.items() if match and call not in UNSEEN}
    assert {call: made[call] for call in wanted} == wanted
    assert made["RenewLease"] >= 2
