"""Follows an experiment: the first trial's log and the progress of all trials."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Protocol

import click

from resolute.cli.display.experiment.outcome import describe_outcome, is_stuck
from resolute.cli.display.experiment.progress import Progress
from resolute.cli.display.log_lines import FoldedLines, format_line
from resolute.cli.display.output import format_value
from resolute.cli.display.problems import ProblemWatch
from resolute.cli.display.terminal import direct, neutralised
from resolute.cli.display.trial_table import best_of, best_steps, best_value
from resolute.cli.interrupts import Interrupts
from resolute.client.connection.merged_stream import CancellableStream, MergedStream, StreamEnded
from resolute.client.remote.experiments import Change
from resolute.client.schema.records import BestRecord, ExperimentRecord, LineRecord, TrialRecord
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services
from resolute.contracts.clock import SYSTEM_CLOCK, Clock
from resolute.errors import UnavailableError

_POLL_SECONDS = 0.25
_PLAIN_SECONDS = 5.0
_LAST_LINES_SECONDS = 15.0
_SPINNER_CELLS = 2
"""What stands before the line of progress: a sign that moves, and a space."""


class Display(Protocol):
    """An output for lines and progress."""

    def line(self, text: str) -> None:
        """Shows a line, which is neutralised already, for good."""

    def progress(self, text: str) -> None:
        """Shows how far it is, in place of what was shown before."""


def follow(
    services: Services,
    experiment: ExperimentRecord,
    *,
    continued: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> ExperimentRecord:
    """Shows the first trial's log and the progress until the experiment ends.

    Args:
        services: The cluster.
        experiment: The experiment as it was submitted.
        continued: Whether it had ended before: the first trial may still show as ended when this begins.
        clock: Measures how often progress is shown.

    Returns:
        The experiment at its end.

    Raises:
        click.exceptions.Exit: Ctrl-C was pressed; the experiment goes on.
    """
    with ExitStack() as stack:
        display = stack.enter_context(_display(clock))
        feed = stack.enter_context(MergedStream())
        interrupts = stack.enter_context(Interrupts())
        following = _Follower(
            services, experiment, continued=continued, feed=feed, display=display, clock=clock
        )
        try:
            following.run(interrupts)
        except KeyboardInterrupt:
            stack.close()
            _detach(experiment)
    _summarize(services, following.state.experiment, is_search=following.state.is_search)
    return following.state.experiment


class _Follower:
    """The state of following an experiment: what has ended, and what comes next."""

    def __init__(
        self,
        services: Services,
        experiment: ExperimentRecord,
        *,
        continued: bool,
        feed: MergedStream,
        display: Display,
        clock: Clock,
    ) -> None:
        self._services = services
        self._continued = continued
        self._feed = feed
        self._display = display
        self._clock = clock
        self.state = Progress(experiment)
        self._watch: CancellableStream = services.experiments.watch(experiment.uuid, include_trials=True)
        self._log: CancellableStream | None = None
        self._watch_ended_at: float | None = None
        self._log_ended = False
        self._problems = ProblemWatch(
            services, show=lambda text: display.line(neutralised(text)), clock=clock
        )
        self._warned = ""
        self._listed_trials: set[str] = set()
        self._folded = FoldedLines()

    def run(self, interrupts: Interrupts) -> None:
        """Shows everything until the experiment ends, or waits for a decision, and its log has been shown."""
        self._feed.add(self._watch, name="watch-experiment")
        while not self._is_over():
            interrupts.check()
            item = self._feed.next(timeout=_POLL_SECONDS)
            if isinstance(item, LineRecord):
                self._show(self._folded.add(item))
            elif isinstance(item, Change):
                self._apply(item)
            elif isinstance(item, StreamEnded):
                self._end(item)
            self._problems.look()
            self._display.progress(self.state.line())
        self._show(self._folded.end())

    def _show(self, lines: Iterable[LineRecord]) -> None:
        for line in lines:
            self._display.line(format_line(line))

    def _is_over(self) -> bool:
        if is_stuck(self.state.experiment):
            self._watch.cancel()
            return True
        if self._watch_ended_at is None:
            return False
        if self._log is None or self._log_ended:
            return True
        # The last lines of a killed trial may never come: what would send them is gone.
        return self._clock.monotonic() - self._watch_ended_at > _LAST_LINES_SECONDS

    def _apply(self, change: Change) -> None:
        self.state.apply(change)
        self._warn()
        self._tell_ends(change)
        first = self.state.first_trial
        if self._log is None and first is not None and not self._may_go_on(first):
            self._display.line(f"following trial {first.id}")
            services, uuid = self._services, first.uuid
            self._log = services.logs.follow(
                uuid, finished=lambda: services.trials.get(uuid).state.is_terminal
            )
            self._feed.add(self._log, name="follow-log")

    def _may_go_on(self, first: TrialRecord) -> bool:
        """Whether the trial has ended and its experiment has not: then its log would end here as well."""
        ended = self.state.experiment.state.is_terminal
        return self._continued and first.state.is_terminal and not ended

    def _tell_ends(self, change: Change) -> None:
        """Says of each trial of a search how it ended, with its best validation."""
        ended = [
            trial
            for trial in change.trials
            if self.state.is_search and trial.state.is_terminal and trial.uuid not in self._listed_trials
        ]
        if not ended:
            return
        self._listed_trials.update(trial.uuid for trial in ended)
        bests: Mapping[str, BestRecord] = {}
        # The copy that comes with a trial is up to seconds old: its last validation may be missing.
        with suppress(UnavailableError):
            bests = self._services.metrics.best(
                self.state.experiment.uuid, [trial.uuid for trial in ended]
            ).trials
        for trial in ended:
            self._display.line(neutralised(_ended_line(trial, bests.get(trial.uuid))))

    def _warn(self) -> None:
        warning = self.state.experiment.warning
        # At the end it is part of the summary.
        goes_on = self.state.experiment.state in {ExperimentState.ACTIVE, ExperimentState.PAUSED}
        if warning and warning != self._warned and goes_on and not is_stuck(self.state.experiment):
            self._display.line(neutralised(f"warning: {warning}"))
        self._warned = warning

    def _end(self, ended: StreamEnded) -> None:
        if ended.source is self._watch:
            if ended.error is not None:
                raise ended.error
            self._watch_ended_at = self._clock.monotonic()
        else:
            # Without its log an experiment can still be followed.
            self._log_ended = True
            if ended.error is not None:
                click.echo(neutralised(f"warning: the log cannot be followed: {ended.error}"), err=True)


def _ended_line(trial: TrialRecord, best: BestRecord | None) -> str:
    result = f": best {best.metric} {best.value:.6g} at step {best.steps}" if best is not None else ""
    return f"trial {trial.id} {trial.state.name}{result}"


def _best(experiment: ExperimentRecord, trial: TrialRecord) -> str:
    return f"{experiment.searcher_metric} {best_value(trial):.6g} at step {best_steps(trial)}"


def _detach(experiment: ExperimentRecord) -> None:
    click.echo(
        f"detached; experiment {experiment.id} goes on. "
        f"To follow it again: resolute e logs -f {experiment.id}; to end it: resolute e kill {experiment.id}",
        err=True,
    )
    raise click.exceptions.Exit(130)


def _summarize(services: Services, experiment: ExperimentRecord, *, is_search: bool) -> None:
    click.echo(describe_outcome(experiment))
    best = best_of(services.trials.list(experiment.uuid), smaller_is_better=experiment.smaller_is_better)
    if best is None:
        return
    if is_search:
        click.echo(f"best trial {best.id}: {_best(experiment, best)} with {format_value(best.hparams)}")
    else:
        click.echo(f"best {_best(experiment, best)}")
    if best.latest_checkpoint:
        click.echo(f"fetch the best checkpoint with: resolute trial download {best.id} --best")


def _display(clock: Clock) -> AbstractContextManager[Display]:
    return LiveDisplay() if sys.stdout.isatty() else _PlainDisplay(clock)


class _PlainDisplay(AbstractContextManager["Display"]):
    """Prints lines to stdout and, at intervals, progress to stderr. It replaces no lines."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown = ""
        self._shown_at = float("-inf")

    def __exit__(self, *_: object) -> None:
        return None

    def line(self, text: str) -> None:
        click.echo(text, file=direct(sys.stdout))

    def progress(self, text: str) -> None:
        now = self._clock.monotonic()
        if text != self._shown and now - self._shown_at >= _PLAIN_SECONDS:
            self._shown, self._shown_at = text, now
            click.echo(text, err=True)


class LiveDisplay(AbstractContextManager["Display"]):
    """Prints lines above a progress line that stays at the bottom of the terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.status import Status

        # It moves the cursor; what it shows is neutralised before.
        self._console = Console(highlight=False, file=direct(sys.stdout))
        self._status = Status("", console=self._console)
        self._print: Callable[..., None] = self._console.print

    def __enter__(self) -> Display:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def line(self, text: str) -> None:
        """See `Display.line`."""
        self._print(text, markup=False, soft_wrap=True)

    def progress(self, text: str) -> None:
        """See `Display.progress`; what does not fit into one row is left out."""
        from rich.text import Text

        shown = Text(neutralised(text))
        # A second row would stay behind when the window is made narrower, and push the log up.
        shown.truncate(max(self._console.width - _SPINNER_CELLS, 1), overflow="ellipsis")
        self._status.update(shown)
