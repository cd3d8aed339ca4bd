"""``resolute trial plot``."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.display.terminal import direct, neutralised
from resolute.cli.display.text_plot import Size, draw
from resolute.cli.options.identifiers import TRIAL
from resolute.cli.options.settings import Settings
from resolute.client.objects.live_metric import watch_metric
from resolute.client.schema.records import MetricSummary, SeriesPoint

_COLUMNS: tuple[Column[SeriesPoint], ...] = (
    Column("Steps", lambda point: point.steps, right=True),
    Column("Value", lambda point: point.value, right=True),
    Column("Time", lambda point: point.time, right=True),
)
_WIDEST = 120


@click.command()
@click.argument("trial_id", type=TRIAL)
@click.argument("metric", default="")
@click.option("--group", default="", help="Group of the metric; required if several groups have it.")
@click.option(
    "--height", type=click.IntRange(min=4), default=18, show_default=True, help="Height of the plot in lines."
)
@click.option(
    "--points", type=click.IntRange(min=2), default=1000, show_default=True, help="Maximum number of points."
)
@click.option(
    "-f", "--follow", is_flag=True, help="Redraw when new points arrive, until the trial has ended."
)
@format_option
@click.pass_obj
def plot(
    settings: Settings,
    trial_id: str,
    metric: str,
    group: str,
    height: int,
    points: int,
    follow: bool,
    output: Format,
) -> None:
    """Plot a metric of a trial over its steps: METRIC, or by default the one that its search goes by.

    Downsampling keeps the extremes visible.
    """
    if follow and output is not Format.TABLE:
        raise click.UsageError("--follow draws; it cannot be combined with --json or --csv.")
    services = settings.services()
    trial = services.trials.get(trial_id)
    metric = metric or services.experiments.get(trial.experiment_uuid).searcher_metric
    where = group or _group_of(services.metrics.summaries([trial.uuid]), metric)
    picture = _LivePlot(f"{where}.{metric} of trial {trial.id}", height)
    if follow:
        _draw_live(picture, watch_metric(services, trial, group=where, name=metric, max_points=points))
        return
    series = services.metrics.series(trial.uuid, group=where, name=metric, max_points=points)
    if output is not Format.TABLE:
        print_items(series, _COLUMNS, output=output)
        return
    try:
        lines = picture.lines(series)
    except (ValueError, IndexError) as error:
        raise click.ClickException(f"trial {trial.id} has no finite value of {where}.{metric} yet") from error
    click.secho(picture.title, bold=True)
    click.echo("\n".join(lines))


@dataclass(frozen=True)
class _LivePlot:
    """The options of a live plot of one series."""

    title: str
    height: int

    def lines(self, points: list[SeriesPoint]) -> list[str]:
        """Draws points.

        Raises:
            ValueError: None of them is finite.
            IndexError: There are none.
        """
        size = Size(width=min(shutil.get_terminal_size().columns, _WIDEST), height=self.height)
        return draw([point.steps for point in points], [point.value for point in points], size=size)


def _draw_live(picture: _LivePlot, series: Iterable[list[SeriesPoint]]) -> None:
    """Draws in place on a terminal; elsewhere only what stands there at the end."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, file=direct(sys.stdout))
    lines: list[str] = []
    with Live(console=console, auto_refresh=False, transient=True) as live:
        for points in series:
            with suppress(ValueError, IndexError):  # nothing finite yet
                lines = picture.lines(points)
            if sys.stdout.isatty():
                live.update(
                    Text("\n".join((neutralised(picture.title), *(lines or ["waiting for points"])))),
                    refresh=True,
                )
    click.secho(picture.title, bold=True)
    click.echo("\n".join(lines or ["no finite value was reported"]))


def _group_of(summaries: list[MetricSummary], metric: str) -> str:
    groups = [item.group for item in summaries if item.name == metric]
    if len(groups) == 1:
        return groups[0]
    if groups:
        raise click.UsageError(f"{metric} was reported in {', '.join(groups)}; say which by --group.")
    known = ", ".join(sorted({item.name for item in summaries})) or "none yet"
    raise click.UsageError(f"the trial never reported {metric}; its metrics are: {known}.")
