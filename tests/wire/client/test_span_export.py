"""The runs of an experiment are sent as spans, each when it has ended."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clusters.other_clusters import other_clusters, services_of
from support.daemons.otlp import collector

from resolute.cli.main import run as run_command
from resolute.client.insight.span_export import SpanExport
from resolute.client.remote.trials import StartedRun
from resolute.client.services import Services
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.tracing import otlp_exporter
from resolute.runtime.offline_run import OfflineRun


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with other_clusters(tmp_path / "cluster") as (running,), services_of(running) as found:
        yield found


def begun(services: Services, runs: Path, trial: str) -> StartedRun:
    """A run outside of the cluster, of one experiment."""
    run = OfflineRun.create(
        runs,
        run_id=str(uuid.uuid4()),
        name="traced",
        now=1000.0,
        external_experiment_id="traced",
        external_trial_id=trial,
    )
    return services.trials.begin(run)


def end(services: Services, run: StartedRun) -> None:
    services.trials.end(run.trial.uuid, run.run, ExitRecord(exit_code=0, end_time=1060.0))


def test_each_run_is_sent_when_it_ends_and_once_more_if_the_endpoint_was_away(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    first, second = (begun(services, tmp_path / "runs", name) for name in ("first", "second"))
    end(services, first)
    sent = SpanExport(services, first.trial.experiment_uuid, otlp_exporter).follow()
    with collector(400) as (address, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        refused = next(sent)
        assert (refused.trial, refused.trace_id) == (first.trial.id, "")
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" in refused.failure
    with collector(200) as (address, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        end(services, second)
        rest = list(sent)
        assert {(one.trial, one.run) for one in rest} == {(first.trial.id, 1), (second.trial.id, 1)}
        assert len(rest) == len({one.trace_id for one in rest}) == len(bodies) == 2


def test_the_command_sends_all_runs_of_an_ended_experiment(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    only = begun(services, tmp_path / "runs", "only")
    end(services, only)
    monkeypatch.setenv("RESOLUTE_MASTER", services.session.endpoint.address)
    monkeypatch.setenv("RESOLUTE_TOKEN", services.session.endpoint.token())
    command = ["trace", "--experiment", str(only.trial.experiment_id), "--export"]
    for status, code, said in ((200, 0, f"{only.trial.id}.1: sent as trace"), (400, 1, "OTEL_EXPORTER")):
        with collector(status) as (address, _):
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
            assert run_command(command, program="resolute") == code
        assert said in "".join(capsys.readouterr())
    assert run_command(["trace", "12", *command[1:]], program="resolute") == 2
