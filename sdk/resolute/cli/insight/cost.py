"""``resolute cost``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import click

from resolute.cli.display.output import Column, Format, format_option, print_items
from resolute.cli.options.identifiers import EXPERIMENTS, keys_argument
from resolute.cli.options.settings import Settings
from resolute.client.insight.costs import Cost, Grouping, Period, Work, costs
from resolute.client.remote.experiments import ExperimentFilter
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.schema.states import ExperimentKind
from resolute.client.services import Services

_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])


@click.command()
@keys_argument("experiment_ids", metavar="[ID[,ID...]]", type_=EXPERIMENTS, required=False)
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
@click.option(
    "--point",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SIZE",
    help="Also show what each SIZE cost by which the metric of the search got better.",
)
@format_option
@click.pass_obj
def cost(  # noqa: PLR0913 - one for each option
    settings: Settings,
    *,
    experiment_ids: tuple[str, ...] | None,
    by: str,
    owners: tuple[str, ...],
    labels: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    point: float | None,
    output: Format,
) -> None:
    """Show the slot-hours, GPU-hours and energy of experiments: of ID, or of all, archived ones included.

    Time counts from the moment when a run got its slots to the moment when it gave them back. Of the
    GPU-hours, the driver's own measurements tell in which the GPUs worked, and their energy; of runs that
    have not ended they are not known yet. An experiment with several labels counts for each of them.

    With --point 0.01, a group that took 3 hours, and whose best validation is 0.06 better than its worst,
    cost 0.5 hours a point. It goes with --by trial or experiment, whose metric is one.
    """
    grouping = Grouping(by)
    if point is not None and grouping not in {Grouping.TRIAL, Grouping.EXPERIMENT}:
        raise click.UsageError("--point goes with --by trial or --by experiment: the metric must be one.")
    services = settings.services()
    kinds = tuple(kind for kind in ExperimentKind if kind is not ExperimentKind.UNSPECIFIED)
    wanted = ExperimentFilter(owners=owners, labels=labels, include_archived=True, kinds=kinds)
    if experiment_ids:
        experiments: Iterator[ExperimentRecord] = map(services.experiments.get, experiment_ids)
    else:
        experiments = services.experiments.list(wanted, order_by="number")
    now = datetime.now(timezone.utc)
    period = Period(since=since and since.astimezone(), until=min(now, until.astimezone()) if until else now)
    gpus = {slot.slot_id for slot in services.cluster.get().slots if slot.kind == "gpu"}
    work = _work(services, experiments, with_metrics=point is not None)
    print_items(costs(work, by=grouping, period=period, gpus=gpus), _columns(grouping, point), output=output)


def _work(services: Services, chosen: Iterator[ExperimentRecord], *, with_metrics: bool) -> Iterator[Work]:
    for experiment in chosen:
        trials = list(services.trials.list(experiment.uuid, with_runs=True))
        values = _validations(services, experiment, trials) if with_metrics else {}
        for trial in trials:
            yield Work(experiment=experiment, trial=trial, validations=values.get(trial.uuid))


def _validations(
    services: Services, experiment: ExperimentRecord, trials: list[TrialRecord]
) -> dict[str, tuple[float, float]]:
    summaries = services.metrics.summaries(
        (trial.uuid for trial in trials), group="validation", names=[experiment.searcher_metric]
    )
    return {
        summary.trial_uuid: (summary.min, summary.max)
        for summary in summaries
        if summary.min is not None and summary.max is not None
    }


def _columns(by: Grouping, point: float | None) -> tuple[Column[Cost], ...]:
    columns: tuple[Column[Cost], ...] = (
        Column(by.value.capitalize(), lambda row: row.group),
        Column("Experiments", lambda row: row.experiments, right=True),
        Column("Trials", lambda row: row.trials, right=True),
        Column("Runs", lambda row: row.runs, right=True),
        Column("Slot hours", lambda row: _rounded(row.slot_hours), right=True),
        Column("GPU hours", lambda row: _rounded(row.gpu_hours), right=True),
        Column("GPU busy hours", lambda row: _rounded(row.gpu_busy_hours), right=True),
        Column("GPU idle hours", lambda row: _rounded(row.gpu_idle_hours), right=True),
        Column("Energy kWh", lambda row: _rounded(row.energy_kwh), right=True),
    )
    if point is None:
        return columns
    size = point
    return (
        *columns,
        Column("Gained", lambda row: row.gained, right=True),
        Column(
            "Slot hours a point",
            lambda row: _rounded(row.slot_hours * size / row.gained) if row.gained else None,
            right=True,
        ),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
