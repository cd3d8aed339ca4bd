"""The operations of a trial, except those that create experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, TypeVar

from resolute.client.objects.base import RemoteObject
from resolute.client.objects.checkpoint import Checkpoint
from resolute.client.objects.checkpoint_ranking import ranked, with_validations
from resolute.client.objects.live_metric import watch_metric
from resolute.client.objects.media import Media
from resolute.client.remote.reports.logs import LineFilter
from resolute.client.schema.ordering import CheckpointSortBy, OrderBy, check_sorting
from resolute.client.schema.records import (
    MetricSummary,
    SeriesPoint,
    TrainingMetrics,
    TrialMetrics,
    TrialRecord,
    ValidationMetrics,
)
from resolute.client.schema.states import LogLevel, TrialState
from resolute.contracts.spool.media_formats import MediaKind
from resolute.errors import NotFoundError

_SUMMARY_GROUPS = {"training": "avg_metrics", "validation": "validation_metrics"}
MetricsT = TypeVar("MetricsT", bound=TrialMetrics)


def of_kind(kind: type[MetricsT], reports: Iterable[TrialMetrics]) -> Iterator[MetricsT]:
    """Yields reports of one group under its own type."""
    for report in reports:
        yield kind(
            report.trial_id,
            report.trial_run_id,
            report.steps_completed,
            report.end_time,
            report.metrics,
            report.group,
        )


def _summary(one: MetricSummary) -> dict[str, Any]:
    total = one.mean * one.count if one.mean is not None else None
    kind = "number" if one.mean is not None else "string" if isinstance(one.last, str) else "object"
    known = {"min": one.min, "max": one.max, "sum": total, "mean": one.mean}
    numbers = {name: value for name, value in known.items() if value is not None}
    return {"count": one.count, "last": one.last, "last_steps": one.last_steps, "type": kind, **numbers}


def _time(given: datetime | str | int | None) -> datetime | None:
    if isinstance(given, str):
        # Python 3.10 does not know the "Z".
        given = datetime.fromisoformat(given.removesuffix("Z") + "+00:00" * given.endswith("Z"))
        return given if given.tzinfo else given.replace(tzinfo=timezone.utc)
    if isinstance(given, int) and not isinstance(given, bool):
        return datetime.fromtimestamp(given, tz=timezone.utc)
    if given is not None and not isinstance(given, datetime):
        raise ValueError(f"a time is {given!r}; a datetime, RFC 3339 or seconds since 1970 were expected")
    return given


class TrialBase(RemoteObject[TrialRecord]):
    """One set of hyperparameters being trained."""

    def __repr__(self) -> str:
        return f"Trial(id={self.id}, state={self.state.name})"

    @property
    def id(self) -> int:
        """Its number."""
        return self._record.id

    @property
    def uuid(self) -> str:
        """Its UUID."""
        return self._record.uuid

    @property
    def experiment_id(self) -> int:
        """Number of its experiment."""
        return self._record.experiment_id

    @property
    def hparams(self) -> dict[str, Any]:
        """Its hyperparameters."""
        return dict(self._record.hparams)

    @property
    def state(self) -> TrialState:
        """Its state when it was last read."""
        return self._record.state

    @property
    def reported_steps(self) -> int | None:
        """Steps of its last report of training or validation when it was last read; None before the first."""
        return self._record.reported_steps

    @property
    def steps_per_second(self) -> float | None:
        """How fast it last trained, averaged over about half a minute; None before its second report."""
        return self._record.steps_per_second

    @property
    def estimated_end_time(self) -> datetime | None:
        """When it will have trained as long as its search lets the longest trial, at that rate.

        None unless it runs, and where the config does not tell how many steps that is.
        """
        return self._record.estimated_end_time

    @property
    def summary_metrics(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Every metric that it reported, summarized: by group, then by name.

        The groups ``training`` and ``validation`` are called ``avg_metrics`` and ``validation_metrics``.
        """
        groups: dict[str, dict[str, dict[str, Any]]] = {}
        for summary in self._services.metrics.summaries([self.uuid]):
            groups.setdefault(_SUMMARY_GROUPS.get(summary.group, summary.group), {})[summary.name] = _summary(
                summary
            )
        return groups

    def _read(self) -> TrialRecord:
        return self._services.trials.get(self.uuid)

    def kill(self) -> None:
        """Ends it at once; its experiment continues."""
        self._record = self._services.trials.kill(self.uuid)

    def iter_logs(  # noqa: PLR0913 - the documented signature
        self,
        follow: bool = False,
        *,
        head: int | None = None,
        tail: int | None = None,
        container_ids: list[str] | None = None,
        rank_ids: list[int] | None = None,
        stdtypes: list[str] | None = None,
        min_level: LogLevel | None = None,
        timestamp_before: datetime | str | int | None = None,
        timestamp_after: datetime | str | int | None = None,
        sources: list[str] | None = None,
        search_text: str | None = None,
    ) -> Iterator[str]:
        """Yields its log, each line with its newline.

        Args:
            follow: Go on until the trial has ended.
            head: Only this many of the oldest lines; not together with ``tail`` or ``follow``.
            tail: Only this many of the newest lines, and with ``follow`` those that come after them.
            container_ids: Only lines of these containers.
            rank_ids: Only lines of these ranks.
            stdtypes: Only "stdout" or "stderr".
            min_level: Only lines of at least this severity.
            timestamp_before: Only lines before this time: a datetime, RFC 3339, or seconds since 1970.
            timestamp_after: Only lines since this time.
            sources: Only lines of these writers: "task", or a part of the platform.
            search_text: Only lines that contain this text, in any case.

        Raises:
            ValueError: ``head`` comes together with ``tail`` or ``follow``, a number of lines is negative, or
                a time cannot be read.
        """
        if min(head or 0, tail or 0) < 0:
            raise ValueError("head and tail must not be negative")
        if head is not None and (tail is not None or follow):
            raise ValueError("head cannot be combined with tail or follow")
        wanted = LineFilter(
            ranks=tuple(rank_ids or ()),
            min_level=min_level or LogLevel.UNSPECIFIED,
            time_from=_time(timestamp_after),
            time_until=_time(timestamp_before),
            text=search_text or "",
            stdtypes=tuple(stdtypes or ()),
            origins=tuple(sources or ()),
            containers=tuple(container_ids or ()),
        )
        for line in self._services.logs.read(self.uuid, wanted, head=head, tail=tail, follow=follow):
            yield line.message + "\n"

    logs = iter_logs

    def iter_metrics(self, group: str | None = None) -> Iterator[TrialMetrics]:
        """Yields what it reported, in ``group`` or in all groups."""
        return self._services.metrics.reports(self._record, group=group or "")

    stream_metrics = iter_metrics

    def stream_training_metrics(self) -> Iterator[TrainingMetrics]:
        """Yields what it reported in the group ``training``."""
        return of_kind(TrainingMetrics, self.iter_metrics("training"))

    def stream_validation_metrics(self) -> Iterator[ValidationMetrics]:
        """Yields what it reported in the group ``validation``."""
        return of_kind(ValidationMetrics, self.iter_metrics("validation"))

    def media(self, name: str = "", *, kind: MediaKind | str | None = None) -> list[Media]:
        """Lists the images, histograms, texts, tables, sounds and figures that it logged, by steps.

        Args:
            name: Only those of this name; empty for all.
            kind: Only those of this kind, such as ``"image"``; None for all.

        Raises:
            ValueError: There is no such kind.
        """
        wanted = None if kind is None else MediaKind(kind)
        return [
            Media(self._services, record)
            for record in self._services.media.list(self.uuid, name=name, kind=wanted)
        ]

    def watch_metric(
        self, name: str, *, group: str = "training", max_points: int = 0
    ) -> Iterator[list[SeriesPoint]]:
        """Yields the points of a metric after each change, until the trial has ended.

        Args:
            name: The metric; nested names are joined by a dot.
            group: Its group.
            max_points: About how many points are given at most, so that extremes stay; zero for 1000.
        """
        return watch_metric(self._services, self._record, group=group, name=name, max_points=max_points)

    def list_checkpoints(
        self,
        sort_by: CheckpointSortBy | str | None = None,
        order_by: OrderBy | None = None,
        max_results: int | None = None,
    ) -> list[Checkpoint]:
        """Lists its checkpoints.

        Args:
            sort_by: An attribute, or the name of a validation metric; None for the best first by the
                experiment's own metric.
            order_by: Direction; goes together with ``sort_by``.
            max_results: Only this many; None for all.

        Raises:
            AssertionError: Only one of ``sort_by`` and ``order_by`` is given.
        """
        check_sorting(sort_by, order_by)
        experiment = self._services.experiments.get(self._record.experiment_uuid)
        records = with_validations(
            self._services.checkpoints.of_trial(self.uuid), [self._record], metrics=self._services.metrics
        )
        sorted_items = ranked(records, experiment, sort_by=sort_by, order_by=order_by)[:max_results]
        return [Checkpoint(self._services, item.checkpoint, validation=item) for item in sorted_items]

    get_checkpoints = list_checkpoints

    def top_checkpoint(self, sort_by: str | None = None, smaller_is_better: bool | None = None) -> Checkpoint:
        """Returns its best checkpoint.

        Args:
            sort_by: The validation metric that decides; None for the experiment's own.
            smaller_is_better: With ``sort_by``: whether smaller values are better.

        Raises:
            NotFoundError: It has none.
        """
        return self.select_checkpoint(best=True, sort_by=sort_by, smaller_is_better=smaller_is_better)

    def select_checkpoint(
        self,
        latest: bool = False,
        best: bool = False,
        uuid: str | None = None,
        sort_by: str | None = None,
        smaller_is_better: bool | None = None,
    ) -> Checkpoint:
        """Returns one of its checkpoints.

        Args:
            latest: The one with the most steps.
            best: The one with the best validation.
            uuid: The one with this UUID.
            sort_by: With ``best``: the validation metric that decides; None for the experiment's own.
            smaller_is_better: With ``sort_by``: whether smaller values are better.

        Raises:
            AssertionError: Not exactly one of ``latest``, ``best`` and ``uuid`` is given, or only one of
                ``sort_by`` and ``smaller_is_better``.
            NotFoundError: It has no such checkpoint.
        """
        if sum((latest, best, uuid is not None)) != 1:
            raise AssertionError("exactly one of latest, best and uuid must be given")
        if (sort_by is None) != (smaller_is_better is None):
            raise AssertionError("sort_by and smaller_is_better must be given together")
        if uuid is not None:
            return self._with_uuid(uuid)
        if latest:
            checkpoints = self.list_checkpoints(CheckpointSortBy.BATCH_NUMBER, OrderBy.DESCENDING, 1)
        elif sort_by is None:
            checkpoints = self.list_checkpoints(max_results=1)
        else:
            order_by = OrderBy.ASCENDING if smaller_is_better else OrderBy.DESCENDING
            checkpoints = self.list_checkpoints(sort_by, order_by, 1)
        if not checkpoints:
            raise NotFoundError(f"trial {self.id} has no checkpoint")
        return checkpoints[0]

    def _with_uuid(self, uuid: str) -> Checkpoint:
        record = self._services.checkpoints.get(uuid)
        if record.trial_uuid != self.uuid:
            raise NotFoundError(f"checkpoint {uuid} is not one of trial {self.id}")
        return Checkpoint(self._services, record)
