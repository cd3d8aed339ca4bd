"""The life of a run is one trace, of spans that every part sends by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.clusters.embedded import embedded
from support.daemons.otlp import collector
from support.waiting import wait_until

CONFIG = """
name: traced
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: 1}
"""
SCRIPT = """
import determined as det

with det.core.init() as core:
    for operation in core.searcher.operations():
        core.train.report_validation_metrics(1, {"loss": 0.5})
        with core.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "weights").write_text("1")
        operation.report_completed(0.5)
"""
PHASES = {
    ("resolute-experiments", "queue"),
    ("resolute-experiments", "place"),
    ("resolute-experiments", "run 1"),
    ("resolute-supervisor", "pull"),
    ("resolute-supervisor", "start"),
    ("resolute-supervisor", "imports"),
    ("resolute-supervisor", "entrypoint"),
    ("resolute-supervisor", "end"),
}
CALLS = {"RenewLease", "BeginCheckpoint", "CommitCheckpoint", "IngestReports", "ReportExit"}


def test_every_part_sends_its_spans_into_the_trace_of_the_run(tmp_path: Path) -> None:
    messages = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "config.yaml").write_text(CONFIG)

    def spans(bodies: Iterable[bytes]) -> list[tuple[str, str, str, str, str]]:
        """Trace, part, name, identifier and parent of every span that has arrived."""
        return [
            (
                span.trace_id.hex(),
                attribute.value.string_value,
                span.name,
                span.span_id.hex(),
                span.parent_span_id.hex(),
            )
            for body in list(bodies)
            for resource in messages.ExportTraceServiceRequest.FromString(body).resource_spans
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    with collector(200) as (address, bodies):
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_HEADERS": "x-key=secret"}
        with embedded(tmp_path / "home", slots=1, **environment) as cluster:
            cluster.det("e", "create", "config.yaml", ".", cwd=tmp_path)
            cluster.det("e", "wait", "1", timeout=120)
            trace_id = json.loads(cluster.run("resolute", "trace", "1.1", "--json").stdout)["trace_id"]
            # A supervisor sends the rest of its spans after it has told the end.
            wait_until(
                lambda: any(name == "end" for _, _, name, _, _ in spans(bodies)),
                what="the supervisor's spans",
            )
        found = [span for span in spans(bodies) if span[0] == trace_id]
        assert {(part, name) for _, part, name, _, _ in found} >= PHASES
        assert {name for _, part, name, _, _ in found if part == "resolute"} >= CALLS
        (root,) = {(identifier, parent) for _, _, name, identifier, parent in found if name == "run 1"}
        assert root[1] == ""
        assert {parent for _, _, name, _, parent in found if name != "run 1"} == {root[0]}
        # Calls of people are traces of their own.
        assert any(name == "CreateExperiment" and trace != trace_id for trace, _, name, _, _ in spans(bodies))
        with embedded(tmp_path / "home", slots=1, **environment) as cluster:
            cluster.run("resolute", "trace", "1.1", "--export")
        exported = [span for span in spans(bodies) if span[2] == "run 1.1"]
        assert [(trace, identifier) for trace, _, _, identifier, _ in exported] == [(trace_id, root[0])]
