"""``resolute cost``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import EXPERIMENTS
from resolute.cli.options.settings import Settings
from resolute.client.insight.costs import Cost, Grouping, Period, costs
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.services import Services

_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.command()
@click.argument("experiment_ids", metavar="[ID[,ID...]]", type=EXPERIMENTS, required=False)
@click.option(
    "--by",
    type=click.Choice([one.value for one in Grouping]),
    default=Grouping.EXPERIMENT.value,
    show_default=True,
    help="What the hours are added up for.",
)
@click.option("--owner", "owners", multiple=True, metavar="NAME", help="Only experiments of this user.")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="Only experiments with this label.")
@click.option("--since", type=_DATE, help="Count only time from this date on (local time).")
@click.option("--until", type=_DATE, help="Count only time before this date (local time).")
@format_option
@click.pass_obj
def cost(
    settings: Settings,
    *,
    experiment_ids: tuple[str, ...] | None,
    by: str,
    owners: tuple[str, ...],
    labels: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    output: Format,
) -> None:
    """Show the slot-hours and GPU-hours of experiments: of ID, or of all, archived ones included.

    Time counts from the moment when a run got its slots to the moment when it gave them back. An experiment
    with several labels counts for each of them.
    """
    services = settings.services()
    wanted = ExperimentFilter(owners=owners, labels=labels, include_archived=True)
    if experiment_ids:
        found: Iterator[ExperimentRecord] = map(services.experiments.get, experiment_ids)
    else:
        found = services.experiments.list(wanted, order_by="number")
    now = datetime.now(timezone.utc)
    period = Period(since=since and since.astimezone(), until=min(now, until.astimezone()) if until else now)
    grouping = Grouping(by)
    gpus = {slot.slot_id for slot in services.cluster.get().slots if slot.kind == "gpu"}
    rows = costs(_trials(services, found), by=grouping, period=period, gpus=gpus)
    print_items(rows, _columns(grouping), output=output)


def _trials(
    services: Services, found: Iterator[ExperimentRecord]
) -> Iterator[tuple[ExperimentRecord, TrialRecord]]:
    for experiment in found:
        for trial in services.trials.list(experiment.uuid, with_runs=True):
            yield experiment, trial


def _columns(by: Grouping) -> tuple[Column[Cost], ...]:
    return (
        Column(by.value.capitalize(), lambda row: row.group),
        Column("Experiments", lambda row: row.experiments, right=True),
        Column("Trials", lambda row: row.trials, right=True),
        Column("Runs", lambda row: row.runs, right=True),
        Column("Slot hours", lambda row: round(row.slot_hours, 4), right=True),
        Column("GPU hours", lambda row: round(row.gpu_hours, 4), right=True),
    )
