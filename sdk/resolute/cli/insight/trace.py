"""``resolute trace``."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.insight.diff import RUN
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.insight.differences import RunKey
from resolute.client.insight.span_export import SpanExport
from resolute.client.insight.spans import send
from resolute.client.insight.timeline import Phase, Timeline, read_timeline
from resolute.contracts.tracing import ENDPOINT_VARIABLES, otlp_exporter

_WIDTH = 40
"""Characters of the time axis."""


@click.command()
@click.argument("run", metavar="[TRIAL[.RUN]]", type=RUN, required=False)
@click.option("--export", is_flag=True, help="Send it as OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT.")
@click.option(
    "--experiment",
    type=EXPERIMENT,
    help="With --export: send all runs of this experiment, each when it has ended, until the experiment has.",
)
@format_option
@click.pass_obj
def trace(
    settings: Settings, run: RunKey | None, export: bool, experiment: str | None, output: Format
) -> None:
    """Show what a run spent its time on: 12.3 is the third run of trial 12, and 12 its latest.

    The phases are those that the services recorded: submit, queue, start, imports (until core.init; known
    once the run has ended), first report (with the first batches), train, checkpoints, preemption, end.
    """
    if export and not any(os.environ.get(name) for name in ENDPOINT_VARIABLES):
        raise click.UsageError("--export needs an endpoint: set OTEL_EXPORTER_OTLP_ENDPOINT.")
    if experiment is not None and (run is not None or not export):
        raise click.UsageError("--experiment goes with --export, and without a run.")
    services = settings.services()
    if experiment is not None:
        _export(SpanExport(services, experiment, otlp_exporter))
        return
    if run is None:
        raise click.UsageError("Name a run: 12.3 is the third run of trial 12, and 12 its latest.")
    timeline = read_timeline(services, run)
    if output is Format.JSON:
        print_json(timeline)
    else:
        print_items(
            timeline.phases,
            _columns(timeline, datetime.now(timezone.utc)),
            output=output,
            title=f"Run {timeline.run} of trial {timeline.trial}",
        )
    if export:
        sent = send(timeline, otlp_exporter(), cluster_id=services.cluster.get().cluster_id)
        click.echo(f"sent as trace {sent}", err=True)


def _export(exporting: SpanExport) -> None:
    missing = set()
    for span in exporting.follow():
        name = f"{span.trial}.{span.run}"
        if span.trace_id:
            missing.discard(name)
            click.echo(f"{name}: sent as trace {span.trace_id}")
        else:
            missing.add(name)
            click.echo(f"{name}: {span.failure}", err=True)
    if missing:
        raise click.exceptions.Exit(1)


def _columns(timeline: Timeline, now: datetime) -> tuple[Column[Phase], ...]:
    return (
        Column("Phase", lambda phase: phase.name),
        Column("After", lambda phase: _seconds(timeline.start, phase.start), right=True),
        Column("Seconds", lambda phase: _seconds(phase.start, phase.end or now), right=True),
        Column("Time", lambda phase: bar(phase, timeline, now=now)),
        Column("Detail", lambda phase: phase.detail if phase.end else f"{phase.detail} (goes on)".strip()),
    )


def bar(phase: Phase, timeline: Timeline, *, now: datetime, width: int = _WIDTH) -> str:
    """Draws a phase on the time axis of its run; at least one character, however short it is."""
    whole = _seconds(timeline.start, max(phase.end or now for phase in timeline.phases)) or 1.0
    first = min(int(_seconds(timeline.start, phase.start) / whole * width), width - 1)
    last = max(first + 1, round(_seconds(timeline.start, phase.end or now) / whole * width))
    return "·" * first + "█" * (min(last, width) - first) + "·" * (width - last)


def _seconds(start: datetime, end: datetime) -> float:
    return round((end - start).total_seconds(), 3)
