"""``resolute preview-search``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from resolute.cli.output import Column, Format, format_option, print_items, print_json
from resolute.cli.settings import Settings
from resolute.client.config_file import config_text, parse_config, read_config, with_overrides
from resolute.client.remote.searches import Plan
from resolute.errors import UnimplementedError


@dataclass(frozen=True)
class _Row:
    """Trials of one bracket that end at one length."""

    bracket: int
    trials: int
    length: int


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("Bracket", lambda row: row.bracket, right=True),
    Column("Trials", lambda row: row.trials, right=True),
    Column("Train to", lambda row: row.length, right=True),
)


@click.command(name="preview-search")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--config", "overrides", multiple=True, metavar="KEY=VALUE", help="Set a field (repeatable).")
@click.option("--template", default="", metavar="NAME", help="Merge this template under the config.")
@format_option
@click.pass_obj
def preview_search(
    settings: Settings, config: Path, overrides: tuple[str, ...], template: str, output: Format
) -> None:
    """Show how many trials the search of CONFIG would train to which length."""
    text = read_config(config)
    if overrides:
        text = config_text(with_overrides(parse_config(text, name=str(config)), overrides))
    services = settings.services()
    checked = services.experiments.validate(text, template=template)
    if checked.search is None:
        raise UnimplementedError("this cluster is too old to preview a search; upgrade it")
    plan = services.searches.preview(checked.search)
    if output is Format.JSON:
        print_json(plan)
        return
    searcher = checked.config["searcher"]
    print_items(_rows(plan), _COLUMNS, output=output, title=f"Search: {searcher['name']}")
    if output is Format.TABLE:
        trials = sum(bracket.trials for bracket in plan.brackets)
        click.echo(f"{trials} trials, {plan.total_units} {_units(searcher)} in total if all go as planned")


def _rows(plan: Plan) -> Iterator[_Row]:
    for number, bracket in enumerate(plan.brackets, start=1):
        for ending in bracket.endings:
            yield _Row(number, ending.trials, ending.length)


def _units(searcher: dict[str, Any]) -> str:
    length = searcher.get("max_length")
    return next(iter(length)) if isinstance(length, dict) and length else "units"
