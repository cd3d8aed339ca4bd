"""``resolute job list|update``."""

from __future__ import annotations

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import JobRecord

PRIORITY = click.IntRange(1, 99)
WEIGHT = click.FloatRange(min=0, min_open=True)
MAX_SLOTS = click.IntRange(min=0)

_COLUMNS: tuple[Column[JobRecord], ...] = (
    Column("Experiment", lambda job: job.experiment_id, right=True),
    Column("Name", lambda job: job.name),
    Column("Owner", lambda job: job.owner),
    Column("State", lambda job: job.state),
    Column("Priority", lambda job: job.priority, right=True),
    Column("Weight", lambda job: job.weight, right=True),
    Column("Max slots", lambda job: job.max_slots, right=True),
    Column("Holds", lambda job: job.held_slots, right=True),
    Column("Waiting", lambda job: job.queued_trials, right=True),
    Column("Why it waits", lambda job: job.explanation),
)


@click.command(name="list")
@format_option
@click.pass_obj
def list_(settings: Settings, output: Format) -> None:
    """List experiments that have not ended, in the order in which they get slots."""
    print_items(settings.services().jobs.list(), _COLUMNS, output=output)


@click.command()
@click.argument("experiment_id", metavar="ID", type=EXPERIMENT)
@click.option("-p", "--priority", type=PRIORITY, help="Priority from 1 (highest) to 99.")
@click.option(
    "-w",
    "--weight",
    type=WEIGHT,
    help="Share of slots among experiments of equal priority.",
)
@click.option("--max-slots", type=MAX_SLOTS, help="Maximum number of slots; 0 for no limit.")
@click.pass_obj
def update(
    settings: Settings, experiment_id: str, priority: int | None, weight: float | None, max_slots: int | None
) -> None:
    """Change the position of experiment ID in the queue. Trials of lower priority may be preempted."""
    if priority is None and weight is None and max_slots is None:
        raise click.UsageError("nothing is to change; give --priority, --weight or --max-slots")
    change_job(settings, experiment_id, priority=priority, weight=weight, max_slots=max_slots)


def change_job(
    settings: Settings,
    experiment_id: str,
    *,
    priority: int | None = None,
    weight: float | None = None,
    max_slots: int | None = None,
) -> None:
    """Changes what is given of an experiment's place in the queue, and prints the result."""
    job = settings.services().jobs.update(
        experiment_id, priority=priority, weight=weight, max_slots=max_slots
    )
    limit = "" if job.max_slots is None else f", at most {job.max_slots} slots"
    click.echo(f"experiment {job.experiment_id} has priority {job.priority}, weight {job.weight:g}{limit}")
