"""``resolute search simulate``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.options.settings import Settings
from resolute.cli.search.config import checked_search, config_options
from resolute.cli.search.curves import read_curves
from resolute.client.remote.searches import SimulatedRung

_COLUMNS: tuple[Column[SimulatedRung], ...] = (
    Column("Bracket", lambda rung: rung.bracket + 1, right=True),
    Column("Train to", lambda rung: rung.length, right=True),
    Column("Reached by", lambda rung: rung.reached, right=True),
    Column("Ended", lambda rung: rung.ended, right=True),
)


@click.command(name="simulate")
@config_options
@click.option("--trials", type=click.IntRange(min=1), help="Set searcher.max_trials.")
@click.option(
    "--slots",
    type=click.IntRange(min=0),
    default=0,
    help="Number of concurrent trials [0: as many as the search requests].",
)
@click.option(
    "--curves",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Learning curves: CSV of trial,length,metric, or a YAML or JSON list of {lengths, metrics}.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plot the trials and rungs into this .png or .svg file.",
)
@format_option
@click.pass_obj
def simulate(  # noqa: PLR0913 - one for each option
    settings: Settings,
    *,
    config: Path,
    overrides: tuple[str, ...],
    template: str,
    trials: int | None,
    slots: int,
    curves: Path | None,
    plot: Path | None,
    output: Format,
) -> None:
    """Simulate the search of CONFIG in virtual time, with synthetic or recorded learning curves.

    Training one unit takes one unit of time.
    """
    if plot is not None:
        from resolute.cli.search.plot import require

        require(plot)
    changes = (*overrides, *([f"searcher.max_trials={trials}"] if trials else []))
    asked = checked_search(settings, config, overrides=changes, template=template)
    recorded = read_curves(curves) if curves is not None else []
    result = settings.services().searches.simulate(asked.spec, curves=recorded, slots=slots)
    if plot is not None:
        from resolute.cli.search.plot import draw

        draw(result, plot, name=asked.searcher["name"], metric=asked.searcher["metric"], units=asked.units)
    if output is Format.JSON:
        print_json(result)
        return
    print_items(result.rungs, _COLUMNS, output=output, title=f"Search: {asked.searcher['name']}")
    if output is Format.TABLE:
        click.echo(
            f"{len(result.trials)} trials, {result.total_units} {asked.units} in total; over after "
            f"{result.duration:.6g} {asked.units} of time"
        )
        if plot is not None:
            click.echo(f"drawn into {plot}")
