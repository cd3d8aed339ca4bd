"""``resolute top``: what the slots of the cluster are doing now."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import click

from resolute.cli.cluster.node_heat import NodeHeat, heat
from resolute.cli.display.output import console, format_value, print_json
from resolute.cli.display.tables.fitted_table import FittedColumn, print_fitted
from resolute.cli.display.terminal import neutralised
from resolute.cli.options.settings import Settings
from resolute.client.schema.records import MetricSummary, SeriesPoint, TrialRecord
from resolute.client.schema.states import TrialState
from resolute.client.services import Services

_TRAINING = "training"
_POINTS = 40
_RECENT = 4
"""The last fourth of a downsampled series counts as recent."""


@dataclass(frozen=True)
class Activity:
    """The activity of a trial that holds slots."""

    trial: int
    experiment: int
    name: str
    state: TrialState
    slots: int
    steps: int
    """Steps at its latest report."""
    steps_per_second: float | None
    """Over its latest reports; None before there are two."""


@dataclass(frozen=True)
class Overview:
    """The cluster at one moment."""

    slots: int
    slots_in_use: int
    slots_disabled: int
    queued_trials: int
    trials: tuple[Activity, ...]
    problems: tuple[str, ...]
    nodes: tuple[NodeHeat, ...] = ()


@click.command()
@click.option("--once", is_flag=True, help="Print it once, as when the output is not a terminal.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two refreshes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it once, as JSON.")
@click.pass_obj
def top(settings: Settings, once: bool, interval: float, as_json: bool) -> None:
    """Show slots in use, the trials on them with their steps per second, and how busy nodes are."""
    services = settings.services()
    if as_json:
        print_json(read(services))
    elif once or not sys.stdout.isatty():
        show(read(services))
    else:
        _refresh(services, interval)


def read(services: Services) -> Overview:
    """Reads what the cluster does now."""
    cluster = services.cluster.get()
    held = Counter(slot.trial_id for slot in cluster.slots if slot.trial_id)
    names = {job.experiment_id: job.name for job in services.jobs.list()}
    trials = [services.trials.get(number) for number in sorted(held)]
    reported: dict[str, list[MetricSummary]] = {}
    for metric in services.metrics.summaries([trial.uuid for trial in trials], group=_TRAINING):
        reported.setdefault(metric.trial_uuid, []).append(metric)
    return Overview(
        slots=len(cluster.slots),
        slots_in_use=sum(bool(slot.allocation_id) for slot in cluster.slots),
        slots_disabled=sum(slot.disabled for slot in cluster.slots),
        queued_trials=cluster.queued_trials,
        trials=tuple(
            _activity(
                services,
                trial,
                name=names.get(trial.experiment_id, ""),
                slots=held[trial.id],
                latest=max(reported.get(trial.uuid, ()), key=lambda metric: metric.last_steps, default=None),
            )
            for trial in trials
        ),
        problems=cluster.problems,
        nodes=tuple(
            heat(
                (trial.id, usage)
                for trial in trials
                for usage in services.trials.machine_usage(trial.id, newest=True)
            )
        ),
    )


def rate(points: Sequence[SeriesPoint]) -> float | None:
    """Steps per second over the latest points; None if they do not tell."""
    recent = points[-max(2, len(points) // _RECENT) :]
    if len(recent) < 2 or recent[-1].time <= recent[0].time:
        return None
    return (recent[-1].steps - recent[0].steps) / (recent[-1].time - recent[0].time)


def show(overview: Overview) -> None:
    """Prints it."""
    used = f"{overview.slots_in_use} of {overview.slots} slots in use"
    if overview.slots_disabled:
        used += f" ({overview.slots_disabled} disabled)"
    click.echo(f"{used}, {overview.queued_trials} trials waiting")
    for problem in overview.problems:
        click.echo(f"warning: {problem}")
    if overview.trials:
        click.echo()
        print_fitted(console(), _columns(overview.trials), notes=())
    if overview.nodes:
        click.echo()
        print_fitted(console(), _node_columns(overview.nodes), notes=())


def _activity(
    services: Services, trial: TrialRecord, *, name: str, slots: int, latest: MetricSummary | None
) -> Activity:
    points = (
        services.metrics.series(trial.uuid, group=_TRAINING, name=latest.name, max_points=_POINTS)
        if latest is not None and latest.mean is not None
        else []
    )
    return Activity(
        trial=trial.id,
        experiment=trial.experiment_id,
        name=name,
        state=trial.state,
        slots=slots,
        steps=trial.steps_completed if latest is None else latest.last_steps,
        steps_per_second=rate(points),
    )


def _column(name: str, values: Sequence[object], *, text: bool = False) -> FittedColumn:
    cells = [neutralised(format_value(value)).replace("\n", " ") for value in values]
    return FittedColumn(name, cells, right=not text, whole=not text, kept=name == "State")


def _node_columns(nodes: Sequence[NodeHeat]) -> list[FittedColumn]:
    def rounded(values: Sequence[float | None]) -> list[str]:
        return ["" if value is None else f"{value:.0f}" for value in values]

    return [
        _column("Node", [node.node for node in nodes], text=True),
        _column("CPU %", rounded([node.cpu for node in nodes])),
        _column("Memory %", rounded([node.memory for node in nodes])),
        _column("GPU %", rounded([node.gpu for node in nodes])),
        _column("°C", rounded([node.celsius for node in nodes])),
        _column("Trials", [", ".join(map(str, node.trials)) for node in nodes], text=True),
    ]


def _columns(trials: Sequence[Activity]) -> list[FittedColumn]:
    return [
        _column("Trial", [trial.trial for trial in trials]),
        _column("Experiment", [trial.experiment for trial in trials]),
        _column("Name", [trial.name for trial in trials], text=True),
        _column("State", [trial.state for trial in trials]),
        _column("Slots", [trial.slots for trial in trials]),
        _column("Steps", [trial.steps for trial in trials]),
        _column("Steps/s", [trial.steps_per_second for trial in trials]),
    ]


def _refresh(services: Services, interval: float) -> None:
    pause = threading.Event()
    try:
        while True:
            overview = read(services)
            click.clear()
            show(overview)
            pause.wait(interval)
    except KeyboardInterrupt:
        return
