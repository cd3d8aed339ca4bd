"""``resolute search whatif``."""

from __future__ import annotations

from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.insight.what_if import SimulatedOutcome, Summary, WhatIf, what_if
from resolute.client.submission.config import config_text, parse_config, read_config
from resolute.errors import UnimplementedError

_SUMMARY_COLUMNS: tuple[Column[tuple[str, Summary]], ...] = (
    Column("Search", lambda row: row[0]),
    Column("Trials", lambda row: row[1].trials, right=True),
    Column("Units trained", lambda row: row[1].units, right=True),
    Column("Best metric", lambda row: row[1].best, right=True),
    Column("Of trial", lambda row: row[1].best_trial, right=True),
)
_COLUMNS: tuple[Column[SimulatedOutcome], ...] = (
    Column("Curve of trial", lambda one: one.recorded, right=True),
    Column("Trains to", lambda one: one.length, right=True),
    Column("Metric", lambda one: one.metric, right=True),
    Column("Extrapolated", lambda one: one.extrapolated),
    Column("Curve repeated", lambda one: one.repeated),
)


@click.command(name="whatif")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option(
    "--searcher",
    "path",
    required=True,
    type=click.Path(path_type=Path),
    help="The other search: a config, or only its section searcher.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=0),
    default=0,
    help="Number of concurrent trials [0: as many as the search requests].",
)
@format_option
@click.pass_obj
def whatif(settings: Settings, experiment_id: str, path: Path, slots: int, output: Format) -> None:
    """Run another search on the learning curves that experiment ID recorded, and compare cost and result.

    Nothing is trained. The trials of the other search follow the recorded curves in the order in which they
    were created; beyond the end of a curve its last value is taken, which is marked as extrapolated.
    """
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    other = parse_config(read_config(path), name=str(path))
    config = {**(experiment.config or {}), "searcher": other.get("searcher", other)}
    checked = services.experiments.validate(config_text(config))
    if checked.search is None:
        raise UnimplementedError("this cluster is too old to simulate a search; upgrade it")
    outcome = what_if(
        services.searches,
        experiment,
        checked.search,
        trials=services.trials.list(experiment.uuid),
        slots=slots,
    )
    if output is Format.JSON:
        print_json(outcome)
    elif output is Format.CSV:
        print_items(outcome.trials, _COLUMNS, output=output)
    else:
        _show(outcome, names=(experiment.searcher_name, checked.config["searcher"]["name"]))


def _show(result: WhatIf, *, names: tuple[str, str]) -> None:
    rows = [(f"{names[0]}, as it ran", result.recorded), (f"{names[1]}, on its curves", result.other)]
    print_items(rows, _SUMMARY_COLUMNS, output=Format.TABLE)
    click.echo()
    print_items(result.trials, _COLUMNS, output=Format.TABLE, title="Trials of the other search")
    if result.extrapolated:
        click.echo(
            f"{result.extrapolated} of {len(result.trials)} trials train beyond the recorded curves: the "
            "last value is used there"
        )
