"""A chart of one metric of some trials."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolute.client.charts.svg import Line, svg
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.services import Services
from resolute.errors import InvalidArgumentError

MAX_TRIALS = 200
_MAX_POINTS = 800
_GROUP = "validation"


@dataclass(frozen=True)
class Chart:
    """A chart with one line for each trial. A notebook shows it if it is the last value of a cell.

    Examples:
        >>> from resolute import client
        >>> client.chart("training/loss", trials=[1]).title
        'training/loss'
    """

    title: str
    """The metric, with its group."""
    lines: tuple[Line, ...]
    log: bool = False
    """Whether the axis of values is logarithmic."""

    def svg(self) -> str:
        """Returns the chart as an SVG document that needs nothing else."""
        return svg(self.title, self.lines, log=self.log)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the chart as an SVG file."""
        Path(path).write_text(self.svg(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<Chart of {self.title}: {', '.join(line.label for line in self.lines) or 'no trials'}>"


def read_chart(
    services: Services,
    metric: str,
    *,
    trials: Sequence[int],
    experiments: Sequence[int],
    top: int,
    log: bool,
) -> Chart:
    """Reads the points of a chart.

    Args:
        services: The cluster.
        metric: The metric with its group, such as ``training/loss``; of the group ``validation`` without one.
            Empty for the metric of the search.
        trials: Numbers of trials.
        experiments: Numbers of experiments, of which the best trials are drawn.
        top: How many of each experiment.
        log: Whether the axis of values is logarithmic.

    Raises:
        InvalidArgumentError: Nothing is named, or too much.
    """
    named = [services.trials.get(number) for number in trials]
    searched = [services.experiments.get(number) for number in experiments]
    drawn = {record.uuid: record for record in [*named, *_best(services, searched, top)]}
    if not trials and not experiments:
        raise InvalidArgumentError("a chart needs trials or experiments: name their numbers")
    if len(drawn) > MAX_TRIALS:
        raise InvalidArgumentError(
            f"these are {len(drawn)} trials; a chart has room for {MAX_TRIALS}: name fewer, or a smaller top"
        )
    if not metric:
        first = searched[0] if searched else services.experiments.get(named[0].experiment_id)
        metric = first.searcher_metric
    group, name = metric.split("/", 1) if "/" in metric else (_GROUP, metric)
    lines = tuple(_line(services, record, group=group, name=name) for record in drawn.values())
    return Chart(f"{group}/{name}", lines, log=log)


def _best(services: Services, experiments: Sequence[ExperimentRecord], top: int) -> Iterator[TrialRecord]:
    for experiment in experiments:
        order = "best_validation" if experiment.smaller_is_better else "best_validation desc"
        yield from services.trials.list(experiment.uuid, order_by=order, limit=top)


def _line(services: Services, trial: TrialRecord, *, group: str, name: str) -> Line:
    points = services.metrics.series(trial.uuid, group=group, name=name, max_points=_MAX_POINTS)
    return Line(f"trial {trial.id}", tuple((point.steps, point.value) for point in points))
