"""Reports of metrics and status of a trial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.contracts.spool.format import MAX_NAME_LENGTH
from resolute.contracts.spool.media_formats import MediaKind
from resolute.contracts.unicode_text import valid_unicode
from resolute.core.media.audio import audio_content
from resolute.core.media.figures import figure_content
from resolute.core.media.histograms import histogram_content
from resolute.core.media.images import image_content
from resolute.core.media.records import new_media
from resolute.core.media.tables import table_content
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.core.reporting.reporter import LogReporter, Reporter
from resolute.core.reporting.trial_record import LocalTrialRecord, TrialRecord
from resolute.core.tensorboard import (
    LocalTensorboard,
    Mangler,
    PathSelector,
    Tensorboard,
    keep_path,
    select_all,
)
from resolute.errors import InvalidArgumentError
from resolute.spool.values import whole_steps

TRAINING = "training"
VALIDATION = "validation"


class TrainContext:
    """Reports metrics and status. Get it as ``Context.train``. Only reports of rank 0 count.

    ``report_*`` takes microseconds: it appends to a file of this machine and returns. ``log_*`` also encodes
    its argument. Reports survive crashes of the process and outages of the cluster. Values that cannot be
    recorded are left out, with one counted warning of each kind in the log. With ``reports: strict`` in the
    experiment's config they raise an error.

    Args:
        reporter: Receives the reports, and the values that are left out of them.
        record: Receives everything else.
        tensorboard: The TensorBoard files of this process.
        rank: Rank of this process; only rank 0 reports.
        confirms: Whether each report waits for the answer of its service and raises an error if the service
            refuses it.
        reported: Called at each report of every rank, as a sign that training continues.
        clock: Clock for the times of media.

    Examples:
        >>> from resolute import core
        >>> with core.init() as context:
        ...     context.train.set_status("training")
        ...     context.train.report_training_metrics(steps_completed=10, metrics={"loss": 0.3})
        ...     context.train.report_validation_metrics(steps_completed=10, metrics={"accuracy": 0.9})
        ...     context.train.log_text("sample", "Once upon a time", steps_completed=10)
    """

    def __init__(
        self,
        *,
        reporter: Reporter,
        record: TrialRecord,
        tensorboard: Tensorboard,
        rank: int = 0,
        confirms: bool = False,
        reported: Callable[[], None] = lambda: None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._reporter = reporter
        self._clock = clock
        self._omissions = reporter.omissions
        self._rank = rank
        self._confirms = confirms
        self._reported = reported
        self._record = record
        self._tensorboard = tensorboard

    def set_status(self, status: str) -> None:
        """Shows people what the trial is doing.

        Args:
            status: A word or two, such as ``training`` or ``validating``.
        """
        self._record.set_status(status)

    def report_training_metrics(
        self,
        steps_completed: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        batch_metrics: Sequence[Mapping[str, Any]] | None = None,
        *,
        latest_batch: int | None = None,
    ) -> None:
        """Reports metrics of training.

        Args:
            steps_completed: Steps done when the metrics were taken.
            metrics: Values by name: numbers, text, None, lists and nested mappings.
            batch_metrics: Metrics of each single batch since the last report, if they are wanted too.
            latest_batch: Older name of ``steps_completed``.

        Raises:
            TypeError: Not exactly one of ``steps_completed`` and ``latest_batch`` is given, or no metrics.
            ForkedProcessError: This process was forked off the one that called ``core.init``.
            QuotaError: The disk is full.
        """
        steps, values = _steps(steps_completed, latest_batch), _given(metrics, "metrics")
        if batch_metrics and isinstance(values, Mapping):
            values = {**values, "batch_metrics": list(batch_metrics)}
        self._report(TRAINING, steps, values)

    def report_validation_metrics(
        self,
        steps_completed: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        latest_batch: int | None = None,
    ) -> None:
        """Reports metrics of a validation.

        Args:
            steps_completed: Steps done when the metrics were taken.
            metrics: Values by name; None is left out with a warning.
            latest_batch: Older name of ``steps_completed``.

        Raises:
            TypeError: Not exactly one of ``steps_completed`` and ``latest_batch`` is given, or no metrics.
            ForkedProcessError: This process was forked off the one that called ``core.init``.
            QuotaError: The disk is full.
        """
        self._report(VALIDATION, _steps(steps_completed, latest_batch), _given(metrics, "metrics"))

    def report_metrics(
        self,
        group: str,
        steps_completed: int | None = None,
        metrics: Mapping[str, Any] | None = None,
        *,
        latest_batch: int | None = None,
    ) -> None:
        """Reports metrics of any group. Several reports of one group at the same steps add up.

        If a run reports a metric several times at one step, the last value counts; of the metric of the
        search, the first value counts.

        Args:
            group: ``training``, ``validation`` or any other name without a dot.
            steps_completed: Steps done when the metrics were taken.
            metrics: Values by name.
            latest_batch: Older name of ``steps_completed``.

        Raises:
            TypeError: Not exactly one of ``steps_completed`` and ``latest_batch`` is given, or no metrics.
            ForkedProcessError: This process was forked off the one that called ``core.init``.
            QuotaError: The disk is full.
        """
        self._report(group, _steps(steps_completed, latest_batch), _given(metrics, "metrics"))

    def log_image(self, name: str, image: Any, *, steps_completed: int, caption: str = "") -> None:
        """Logs an image.

        Args:
            name: Its name, such as ``samples``; images of one name are shown by steps.
            image: The path or the bytes of a PNG, JPEG, GIF or WebP file; an image of Pillow; or an array or
                tensor of height by width, perhaps with 1 to 4 channels first or last: bytes from 0 to 255, or
                floating-point numbers from 0 to 1. Its file may have 2 000 000 bytes; with Pillow installed,
                an array whose PNG would be larger becomes a JPEG.
            steps_completed: Steps done.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        self._log(MediaKind.IMAGE, name, steps_completed, lambda: image_content(image), caption)

    def log_images(
        self, name: str, images: Iterable[Any], *, steps_completed: int, captions: Sequence[str] = ()
    ) -> None:
        """Logs several images under one name and step; they are shown as a grid.

        Args:
            name: Their name.
            images: The images, each as for ``log_image``; a tensor of them, by its first dimension.
            steps_completed: Steps done.
            captions: A line for each.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        try:
            pairs = list(zip_longest(images, captions, fillvalue=""))
        except Exception as error:  # noqa: BLE001 - as of a single one
            if self._reports():
                self._leave_out(MediaKind.IMAGE, name, error)
            return
        for image, caption in pairs:
            self.log_image(name, image, steps_completed=steps_completed, caption=caption)

    def log_histogram(
        self, name: str, values: Any, *, steps_completed: int, bins: int = 64, caption: str = ""
    ) -> None:
        """Logs how values are distributed, such as weights or gradients.

        Args:
            name: Its name.
            values: An array, a tensor, or lists of numbers. NaN and infinities are left out and counted.
            steps_completed: Steps done.
            bins: Ranges of equal width in which values are counted, at most 512.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        make = partial(histogram_content, values, bins=bins)
        self._log(MediaKind.HISTOGRAM, name, steps_completed, make, caption)

    def log_text(self, name: str, text: str, *, steps_completed: int, caption: str = "") -> None:
        """Logs text, such as what a language model generates. It is shown as it is, never as HTML.

        Args:
            name: Its name.
            text: The text.
            steps_completed: Steps done.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        self._log(MediaKind.TEXT, name, steps_completed, lambda: str(text).encode(), caption)

    def log_table(
        self,
        name: str,
        table: Any,
        *,
        steps_completed: int,
        columns: Sequence[str] | None = None,
        caption: str = "",
    ) -> None:
        """Logs a table, such as predictions, or a confusion matrix.

        Args:
            name: Its name.
            table: A data frame of pandas; a mapping from columns to lists; a list of mappings; or, with
                ``columns``, a list of rows. At most 10 000 rows of 200 columns.
            steps_completed: Steps done.
            columns: Names of the columns; of the first three kinds they choose and order them.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        make = partial(table_content, table, columns)
        self._log(MediaKind.TABLE, name, steps_completed, make, caption)

    def log_audio(
        self,
        name: str,
        audio: Any,
        *,
        steps_completed: int,
        sample_rate: int | None = None,
        caption: str = "",
    ) -> None:
        """Logs a sound.

        Args:
            name: Its name.
            audio: The path or the bytes of a WAV, MP3, Ogg or FLAC file; or an array or tensor of samples,
                perhaps by channels: integers of 16 bits, or floating-point numbers from -1 to 1.
            steps_completed: Steps done.
            sample_rate: Samples per second, of arrays.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        make = partial(audio_content, audio, sample_rate=sample_rate)
        self._log(MediaKind.AUDIO, name, steps_completed, make, caption)

    def log_figure(self, name: str, figure: Any, *, steps_completed: int, caption: str = "") -> None:
        """Logs a figure: one of Matplotlib as an image, one of Plotly with its data.

        Args:
            name: Its name.
            figure: The figure.
            steps_completed: Steps done.
            caption: A line for people.

        Raises:
            ForkedProcessError: This process was forked off the one that called ``core.init``.
        """
        self._log(MediaKind.FIGURE, name, steps_completed, lambda: figure_content(figure), caption)

    def flush(self, timeout: float | None = None) -> None:
        """Waits until the services have stored every report of this process.

        Args:
            timeout: Seconds to wait at most; None waits for as long as it takes.

        Raises:
            DeadlineError: Some have not arrived in time. They are not lost.
        """
        self._reporter.flush(timeout)

    def get_experiment_best_validation(self) -> float | None:
        """Returns the best value of the searcher's metric in the whole experiment, or None before any."""
        return self._record.best_validation()

    def report_early_exit(self, reason: EarlyExitReason, *, message: str = "") -> None:
        """Tells the platform that the trial is about to end early, and why. A second reason is ignored.

        Args:
            reason: Why the trial ends.
            message: The reason in words; its first 500 characters are shown in one line.

        Raises:
            TypeError: ``reason`` is no ``EarlyExitReason``.
        """
        if not isinstance(reason, EarlyExitReason):
            raise TypeError(f"an EarlyExitReason was expected, not {reason!r}")
        self._record.report_early_exit(reason, message)

    def report_progress(self, progress: float) -> None:
        """Says which share of the trial is done. For scripts without searcher operations.

        Args:
            progress: From 0 to 1; anything else is left out with a warning.
        """
        if not self._reports():
            return
        try:
            share = float(progress)
        except Exception:  # noqa: BLE001 - what libraries raise for what is no number has many types
            share = math.nan
        if 0 <= share <= 1:
            self._record.report_progress(share)
        else:
            error = ValueError(f"progress is {progress!r:.80}; a number from 0 to 1 was expected")
            self._omissions.leave_out("progress that is not a number from 0 to 1", error)

    def set_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Replaces the free metadata of the trial.

        Args:
            metadata: JSON-like data by name.

        Returns:
            The metadata as kept.
        """
        return self._record.set_metadata(metadata)

    def get_metadata(self) -> dict[str, Any]:
        """Returns the free metadata of the trial; empty if none was set."""
        return self._record.metadata()

    def get_tensorboard_path(self) -> Path:
        """Returns the directory in which this process may write TensorBoard events."""
        return self._tensorboard.path

    def upload_tensorboard_files(
        self, selector: PathSelector = select_all, mangler: Mangler = keep_path
    ) -> None:
        """Copies what is in ``get_tensorboard_path`` to where the experiment's events are kept.

        Args:
            selector: Says of each file, by its path, whether it is copied.
            mangler: Gives each file its path at the destination, from its relative path and this rank.

        Raises:
            RuntimeError: The context was made with ``TensorboardMode.AUTO``, which copies on its own.
        """
        self._tensorboard.upload(selector, mangler)

    def _get_last_validation(self) -> int | None:
        """Returns the steps of the newest validation that the cluster knows, or None before any."""
        return self._record.last_validation_steps()

    def _reports(self) -> bool:
        """Notes that training goes on; whether what this rank reports is kept."""
        self._reported()
        if self._rank:
            message = f"only rank 0 reports; this is rank {self._rank}: its reports are left out"
            self._omissions.leave_out(f"reports of rank {self._rank}", RuntimeError(message))
        return not self._rank

    def _log(self, kind: MediaKind, name: Any, steps: Any, make: Callable[[], bytes], caption: Any) -> None:
        if not self._reports():
            return
        try:
            media = new_media(
                kind,
                name=name,
                steps=whole_steps(steps),
                time=self._clock.time(),
                content=make(),
                caption=caption,
            )
        except Exception as error:  # noqa: BLE001 - no picture is worth a training, whatever its library raises
            self._leave_out(kind, name, error)
            return
        self._reporter.log_media(media)

    def _leave_out(self, kind: MediaKind, name: Any, error: Exception) -> None:
        message = f"{kind.value} {name!r} was not logged: {error}"
        self._omissions.leave_out(f"{kind.value}s that cannot be logged", InvalidArgumentError(message))

    def _report(self, group: str, steps: Any, metrics: Any) -> None:
        if not self._reports():
            return
        try:
            whole, values = whole_steps(steps), _values(group, metrics)
        except (InvalidArgumentError, ValueError) as error:
            self._omissions.leave_out("whole reports", error)
            return
        if group == VALIDATION and any(value is None for value in values.values()):
            values = self._without_none(values)
        self._reporter.report(group, whole, values)
        if self._confirms:
            self._reporter.confirm()

    def _without_none(self, metrics: Mapping[str, Any]) -> Mapping[str, Any]:
        missing = ", ".join(str(name) for name, value in metrics.items() if value is None)
        error = RuntimeError(f"validation metrics must have a value; {missing} is None")
        self._omissions.leave_out("values of validations that are None", error)
        return {name: value for name, value in metrics.items() if value is not None}


class DummyTrainContext(TrainContext):
    """Checks and logs reports off cluster.

    Examples:
        >>> from resolute import core
        >>> train = core.DummyTrainContext()
        >>> train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.5})
    """

    def __init__(
        self, tensorboard: Tensorboard | None = None, *, reporter: Reporter | None = None, rank: int = 0
    ) -> None:
        super().__init__(
            reporter=reporter or LogReporter(),
            record=LocalTrialRecord(),
            tensorboard=tensorboard or LocalTensorboard(),
            rank=rank,
        )


def _values(group: Any, metrics: Any) -> Mapping[str, Any]:
    if not isinstance(group, str) or not group or "." in group:
        raise ValueError(f"the group {group!r:.80} is not valid: a name without a dot was expected")
    if len(group) > MAX_NAME_LENGTH or group != valid_unicode(group):
        raise ValueError(
            f"the group {group!r:.80} is not valid: at most {MAX_NAME_LENGTH} characters of Unicode were "
            "expected"
        )
    if not isinstance(metrics, Mapping):
        raise InvalidArgumentError(
            f"metrics are a {type(metrics).__name__}; a mapping from names to values was expected"
        )
    return metrics


def _given(metrics: Any, name: str) -> Any:
    if metrics is None:
        raise TypeError(f"{name} are missing: a mapping from names to values was expected")
    return metrics


def _steps(steps_completed: int | None, latest_batch: int | None) -> Any:
    if (steps_completed is None) == (latest_batch is None):
        raise TypeError(
            "steps_completed (or latest_batch, its older name) must be given, and only one of them"
        )
    return latest_batch if steps_completed is None else steps_completed
