"""``resolute experiment list``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.records import ExperimentRecord
from resolute.client.schema.states import ExperimentState

COLUMNS: tuple[Column[ExperimentRecord], ...] = (
    Column("ID", lambda e: e.id, right=True),
    Column("Name", lambda e: e.name),
    Column("State", lambda e: e.shown_state, kept=True),
    Column("Progress", lambda e: e.shown_progress, right=True),
    Column("Done", lambda e: e.estimated_end_time),
    Column("Trials", lambda e: e.trial_count, right=True),
    Column("Searcher", lambda e: e.searcher_name),
    Column("Owner", lambda e: e.owner),
    Column("Created", lambda e: e.create_time),
    Column("Ended", lambda e: e.end_time),
    Column("Archived", lambda e: e.archived),
    Column("Why it waits", lambda e: e.explanation, note=True),
    Column("Warning", lambda e: e.warning, note=True),
)
"""What lists of experiments show."""

PLACE_COLUMNS: tuple[Column[ExperimentRecord], ...] = (
    Column("Workspace", lambda e: e.workspace),
    Column("Project", lambda e: e.project),
)
"""What lists of experiments show with ``--show_project``."""

_STATES = sorted(state.name for state in ExperimentState if state is not ExperimentState.UNSPECIFIED)


@click.command(name="list")
@click.option("-a", "--all", "everything", is_flag=True, help="Include archived experiments.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(_STATES, case_sensitive=False),
    metavar="STATE",
    help="Only experiments in this state (repeatable).",
)
@click.option(
    "--owner", "owners", multiple=True, metavar="NAME", help="Only experiments of this user (repeatable)."
)
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="Only experiments with this label (repeatable)."
)
@click.option("--name", default="", metavar="TEXT", help="Only experiments whose name contains this text.")
@click.option(
    "--filter",
    "expression",
    default="",
    metavar="TEXT",
    help="Only experiments for which this holds, such as 'val_loss < 0.1 and lr > 1e-3'.",
)
@click.option(
    "--show_project", "--show-project", "show_project", is_flag=True, help="Also show workspace and project."
)
@page_options(limit=200)
@format_option
@click.pass_obj
def list_(  # noqa: PLR0913, PLR0917 - click hands over every option
    settings: Settings,
    everything: bool,
    states: tuple[str, ...],
    owners: tuple[str, ...],
    labels: tuple[str, ...],
    name: str,
    expression: str,
    show_project: bool,
    page: Page,
    output: Format,
) -> None:
    """List experiments, newest first."""
    wanted = ExperimentFilter(
        states=tuple(ExperimentState(state.upper()) for state in states),
        owners=owners,
        labels=labels,
        name=name,
        expression=expression,
        include_archived=everything,
    )
    experiments = settings.services().experiments.list(wanted, limit=page.end)
    print_items(page.of(experiments), COLUMNS + PLACE_COLUMNS if show_project else COLUMNS, output=output)
