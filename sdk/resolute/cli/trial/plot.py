"""``resolute trial plot``."""

from __future__ import annotations

import shutil

import click

from resolute.cli.braille import Size, draw
from resolute.cli.identifiers import TRIAL
from resolute.cli.output import Column, Format, format_option, print_items
from resolute.cli.settings import Settings
from resolute.client.records import MetricSummary, SeriesPoint

_COLUMNS: tuple[Column[SeriesPoint], ...] = (
    Column("Steps", lambda point: point.steps, right=True),
    Column("Value", lambda point: point.value, right=True),
    Column("Time", lambda point: point.time, right=True),
)
_WIDEST = 120


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.argument("metric")
@click.option("--group", default="", help="Group of the metric; needed when several groups have it.")
@click.option("--height", type=click.IntRange(min=4), default=18, show_default=True, help="Lines to draw on.")
@click.option(
    "--points", type=click.IntRange(min=2), default=1000, show_default=True, help="Points to fetch."
)
@format_option
@click.pass_obj
def plot(
    settings: Settings, trial_id: str, metric: str, group: str, height: int, points: int, output: Format
) -> None:
    """Draw a metric of a trial over its steps. Extremes stay visible however long the series is."""
    services = settings.services()
    trial = services.trials.get(trial_id)
    where = group or _group_of(services.metrics.summaries([trial.uuid]), metric)
    found = services.metrics.series(trial.uuid, group=where, name=metric, max_points=points)
    if output is not Format.TABLE:
        print_items(found, _COLUMNS, output=output)
        return
    size = Size(width=min(shutil.get_terminal_size().columns, _WIDEST), height=height)
    try:
        lines = draw([point.steps for point in found], [point.value for point in found], size=size)
    except (ValueError, IndexError) as error:
        raise click.ClickException(f"trial {trial.id} has no finite value of {where}.{metric} yet") from error
    click.secho(f"{where}.{metric} of trial {trial.id}", bold=True)
    click.echo("\n".join(lines))


def _group_of(summaries: list[MetricSummary], metric: str) -> str:
    groups = [item.group for item in summaries if item.name == metric]
    if len(groups) == 1:
        return groups[0]
    if groups:
        raise click.UsageError(f"{metric} was reported in {', '.join(groups)}; say which by --group.")
    known = ", ".join(sorted({item.name for item in summaries})) or "none yet"
    raise click.UsageError(f"the trial never reported {metric}; its metrics are: {known}.")
