"""A metric of a trial while the trial runs."""

from __future__ import annotations

from collections.abc import Iterator

from resolute.client.connection.merged_stream import CancellableStream, MergedStream, StreamEnded
from resolute.client.remote.experiments import Change
from resolute.client.schema.records import SeriesPoint, TrialRecord
from resolute.client.services import Services

_POLL_SECONDS = 1.0


def watch_metric(
    services: Services, trial: TrialRecord, *, group: str, name: str, max_points: int = 0
) -> Iterator[list[SeriesPoint]]:
    """Yields the points of a metric after each change, until the trial has ended.

    Args:
        services: The cluster.
        trial: The trial.
        group: Group of the metric.
        name: Its dotted name.
        max_points: About how many points are given at most, so that extremes stay; zero for 1000.

    Raises:
        UnavailableError: A service was away for too long.
    """
    with MergedStream() as feed:
        series: CancellableStream = services.metrics.watch(
            trial.uuid, group=group, name=name, max_points=max_points
        )
        life: CancellableStream = services.experiments.watch(trial.experiment_uuid, include_trials=True)
        feed.add(series, name="watch-series")
        feed.add(life, name="watch-experiment")
        while True:
            item = feed.next(timeout=_POLL_SECONDS)
            if isinstance(item, list):
                yield item
            elif isinstance(item, StreamEnded):
                if item.error is not None:
                    raise item.error
                break
            elif isinstance(item, Change) and _has_ended(trial, item):
                break
    # What came last may still have been on its way to the watch.
    yield services.metrics.series(trial.uuid, group=group, name=name, max_points=max_points or 1000)


def _has_ended(trial: TrialRecord, change: Change) -> bool:
    return any(other.uuid == trial.uuid and other.state.is_terminal for other in change.trials)
