"""``resolute job list|update|update-batch``."""

from __future__ import annotations

from typing import Any

import click

from resolute.cli.display.output import Column, Format, format_option, print_items, yaml_option
from resolute.cli.options.identifiers import EXPERIMENT
from resolute.cli.options.pagination import Page, page_options
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import JobRecord
from resolute.errors import FailedPreconditionError, NotFoundError

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
    Column("Done", lambda job: job.estimated_end_time),
    Column("Why it waits", lambda job: job.explanation, note=True),
)


_LEAST_PRIORITY = 99
_CHANGES: dict[str, Any] = {
    "priority": PRIORITY,
    "weight": WEIGHT,
    "max_slots": MAX_SLOTS,
}


@click.command(name="list")
@page_options(limit=None)
@click.option("--reverse", is_flag=True, help="Last experiment first.")
@click.option("--table", is_flag=True, hidden=True)  # tables are what is printed anyhow
@format_option
@yaml_option
@click.pass_obj
def list_(settings: Settings, page: Page, reverse: bool, table: bool, output: Format) -> None:
    """List experiments that have not ended, in the order in which they get slots."""
    del table
    jobs = settings.services().jobs.list()
    print_items(page.of(reversed(jobs) if reverse else jobs), _COLUMNS, output=output)


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
@click.option(
    "--ahead-of", type=EXPERIMENT, metavar="ID", help="Take the next higher priority than this one."
)
@click.option(
    "--behind-of", type=EXPERIMENT, metavar="ID", help="Take the next lower priority than this one."
)
@click.pass_obj
def update(
    settings: Settings,
    experiment_id: str,
    priority: int | None,
    weight: float | None,
    max_slots: int | None,
    ahead_of: str | None,
    behind_of: str | None,
) -> None:
    """Change the position of experiment ID in the queue. Trials of lower priority may be preempted."""
    if sum(value is not None for value in (priority, ahead_of, behind_of)) > 1:
        raise click.UsageError("--priority, --ahead-of and --behind-of exclude each other.")
    if all(value is None for value in (priority, weight, max_slots, ahead_of, behind_of)):
        raise click.UsageError(
            "nothing to change; give --priority, --ahead-of, --behind-of, --weight or --max-slots"
        )
    if ahead_of is not None:
        priority = _priority_beside(settings, ahead_of, step=-1)
    elif behind_of is not None:
        priority = _priority_beside(settings, behind_of, step=1)
    change_job(settings, experiment_id, priority=priority, weight=weight, max_slots=max_slots)


@click.command(name="update-batch")
@click.argument("operations", metavar="ID.FIELD=VALUE...", nargs=-1, required=True)
@click.pass_obj
def update_batch(settings: Settings, operations: tuple[str, ...]) -> None:
    """Change several experiments: FIELD is priority, weight or max_slots, as in `7.priority=10`."""
    for key, change in [_parsed(operation) for operation in operations]:
        change_job(settings, key, **change)


def _parsed(operation: str) -> tuple[str, dict[str, Any]]:
    target, _, value = operation.partition("=")
    key, _, field = target.rpartition(".")
    kind = _CHANGES.get(field.replace("-", "_"))
    if not value or kind is None:
        raise click.UsageError(f"{operation!r}: write ID.priority=N, ID.weight=N or ID.max_slots=N.")
    return EXPERIMENT.convert(key, None, None), {field.replace("-", "_"): kind.convert(value, None, None)}


def _priority_beside(settings: Settings, key: str, *, step: int) -> int:
    """Finds the priority one step above or below that of another experiment in the queue."""
    number = settings.services().experiments.get(key).id
    other = next((job for job in settings.services().jobs.list() if job.experiment_id == number), None)
    if other is None:
        raise NotFoundError(f"experiment {number} is not in the queue; `resolute job list` shows the queue")
    if not 1 <= other.priority + step <= _LEAST_PRIORITY:
        raise FailedPreconditionError(
            f"experiment {number} has priority {other.priority}, and there is none beyond it; "
            f"give experiment {number} another one first: resolute job update {number} --priority N"
        )
    return other.priority + step


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
