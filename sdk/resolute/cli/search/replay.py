"""``resolute search replay``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from resolute.cli.display.output import Column, Format, format_option, print_fields, print_items, print_json
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.remote.searches import ReplayResult


@dataclass(frozen=True)
class _RungPosition:
    """A trial on a rung."""

    bracket: int
    rung: int
    place: int
    of: int
    trial: str
    metric: float
    best: int
    """How many of the rung go on."""

    @property
    def is_promoted(self) -> bool:
        return self.place <= self.best


_COLUMNS: tuple[Column[_RungPosition], ...] = (
    Column("Bracket", lambda row: row.bracket, right=True),
    Column("Rung", lambda row: row.rung, right=True),
    Column("Place", lambda row: row.place, right=True),
    Column("Trial", lambda row: row.trial),
    Column("Metric", lambda row: row.metric, right=True),
    Column("Among best", lambda row: row.is_promoted),
)


@click.command(name="replay")
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option(
    "--until", "--at", "until", type=click.IntRange(min=1), help="Stop after this event of the log."
)
@format_option
@click.pass_context
def replay(ctx: click.Context, experiment_id: str, until: int | None, output: Format) -> None:
    """Replay the search of experiment ID from its log, and compare the decisions with the recorded ones.

    Fails if any decision differs. With --until or --at, shows the rungs after that event, what
    the search decided, and why.
    """
    settings: Settings = ctx.obj
    services = settings.services()
    experiment = services.experiments.get(experiment_id)
    result = services.searches.replay(experiment.uuid, until=until or 0)
    if output is Format.JSON:
        print_json(result)
    elif output is Format.CSV:
        print_items(_rung_positions(result.state), _COLUMNS, output=output)
    else:
        show(result, in_full=until is not None)
    if not result.equal:
        ctx.exit(1)


def show(result: ReplayResult, *, in_full: bool) -> None:
    """Prints what came of a replay.

    Args:
        result: It.
        in_full: Print where the search stands, too, not only what came out otherwise.
    """
    state = result.state
    if result.equal:
        click.echo(f"{state['sequence']} events decided again: every decision is as recorded")
    else:
        click.echo(f"event {result.first_difference} comes out otherwise: {result.detail}", err=True)
    if not in_full and result.equal:
        return
    places = list(_rung_positions(state))
    print_fields(
        [
            ("Event", result.event),
            ("Decided", "; ".join(result.decisions) or "nothing"),
            ("Because", "; ".join(dict.fromkeys(result.reasons)) or "nothing was decided"),
            ("Trials", f"{state['requested']} asked for, {state['closed']} closed"),
            ("Over", state["over"]),
        ]
    )
    if places:
        click.echo()
        print_items(places, _COLUMNS, output=Format.TABLE, title="Rungs")


def _rung_positions(state: Mapping[str, Any]) -> Iterator[_RungPosition]:
    method = state["method"]
    for bracket, one in enumerate(method.get("brackets", [method])):
        for number, rung in enumerate(one.get("rungs", [])):
            of, best = len(rung["entries"]), rung["top"]
            for place, (trial, metric, _) in enumerate(rung["entries"], start=1):
                yield _RungPosition(bracket, number, place, of, trial, metric, best)
