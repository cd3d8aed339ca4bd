"""``resolute search preview``, also ``resolute preview-search``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, print_json
from resolute.cli.options.settings import Settings
from resolute.cli.search.config import checked_search, config_options
from resolute.client.remote.searches import Plan


@dataclass(frozen=True)
class _Row:
    """The number of trials of one bracket that end at one length."""

    bracket: int
    trials: int
    length: int


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("Bracket", lambda row: row.bracket, right=True),
    Column("Trials", lambda row: row.trials, right=True),
    Column("Train to", lambda row: row.length, right=True),
)


@click.command(name="preview")
@config_options
@format_option
@click.pass_obj
def preview(
    settings: Settings, config: Path, overrides: tuple[str, ...], template: str, output: Format
) -> None:
    """Show how many trials the search of CONFIG would train, and to what length."""
    asked = checked_search(settings, config, overrides=overrides, template=template)
    plan = settings.services().searches.preview(asked.spec)
    if output is Format.JSON:
        print_json(plan)
        return
    print_items(_rows(plan), _COLUMNS, output=output, title=f"Search: {asked.searcher['name']}")
    if output is Format.TABLE:
        trials = sum(bracket.trials for bracket in plan.brackets)
        click.echo(f"{trials} trials, {plan.total_units} {asked.units} in total if all go as planned")


preview_search = click.Command(
    "preview-search", callback=preview.callback, params=preview.params, help=preview.help
)
"""The same by its older name."""


def _rows(plan: Plan) -> Iterator[_Row]:
    for number, bracket in enumerate(plan.brackets, start=1):
        for ending in bracket.endings:
            yield _Row(number, ending.trials, ending.length)
