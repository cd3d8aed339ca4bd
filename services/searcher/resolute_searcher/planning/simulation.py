"""Simulates a whole search in virtual time, on a number of slots and with given learning curves."""

from __future__ import annotations

import heapq
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from resolute_searcher.identifiers import invalid_field
from resolute_searcher.log.actions import CloseTrial, CreateTrial, RunTrial, StopTrial
from resolute_searcher.log.entry import Entry
from resolute_searcher.log.events import Event, Started, TrialClosed, ValidationCompleted, ValidationReported
from resolute_searcher.log.operations import Create, ValidateAfter
from resolute_searcher.planning.curves import Curves
from resolute_searcher.spec.search import AdaptiveAshaSpec, AsyncHalvingSpec, SearchSpec
from resolute_searcher.spec.space import Json
from resolute_searcher.state_machine.search import Search

_WHOLE_TRIAL = 1
"""Length of trials that know themselves when they are done."""


@dataclass(slots=True)
class SimulatedTrial:
    """A simulated trial.

    Attributes:
        number: Position in the order of creation, from 0.
        bracket: The bracket that requested it.
        length: Absolute length to which it trained.
        metric: Last metric of the trial; NaN if it reported none.
        start: Virtual time of its first training.
        end: Virtual time of its end.
    """

    number: int
    bracket: int
    length: int = 0
    metric: float = float("nan")
    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True, slots=True)
class RungCount:
    """The number of trials that reached one length in one bracket.

    Attributes:
        bracket: Position of the bracket.
        length: Absolute length.
        reached: Number of trials that trained to it.
        ended: Number of trials that ended there.
    """

    bracket: int
    length: int
    reached: int
    ended: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of a simulation.

    Attributes:
        trials: The trials in the order of creation.
        rungs: Number of trials that reached each rung, by bracket, then from the bottom up.
        total_units: Sum of the training units of all trials.
        duration: Virtual time at the end. Training one unit takes one unit of time.
        events: Number of events on which the search decided.
    """

    trials: tuple[SimulatedTrial, ...]
    rungs: tuple[RungCount, ...]
    total_units: int
    duration: float
    events: int


def simulate(
    spec: SearchSpec,
    curves: Curves,
    *,
    slots: int = 0,
    most_trials: int = sys.maxsize,
    on_entry: Callable[[Entry], None] | None = None,
) -> Simulation:
    """Simulates a checked spec to its end.

    Trials wait for a slot in the order in which they got work. Equal arguments give equal results.

    Args:
        spec: What to search.
        curves: Tell the metrics.
        slots: Trials that train at once; 0 for as many as the search asks for.
        most_trials: More of them are not simulated.
        on_entry: Given each entry of the log.

    Raises:
        InvalidArgumentError: There are more trials.
    """
    return _Simulator(spec, curves, slots=slots, most_trials=most_trials, on_entry=on_entry).run()


@dataclass(slots=True)
class _Simulator:
    spec: SearchSpec
    curves: Curves
    slots: int
    most_trials: int
    on_entry: Callable[[Entry], None] | None
    search: Search = field(init=False)
    trials: dict[str, SimulatedTrial] = field(default_factory=dict)
    hparams: dict[str, dict[str, Json]] = field(default_factory=dict)
    reached: dict[tuple[int, int], int] = field(default_factory=dict)
    waiting: deque[str] = field(default_factory=deque)
    training: list[tuple[float, int, str, int]] = field(default_factory=list)
    busy: set[str] = field(default_factory=set)
    closing: list[str] = field(default_factory=list)
    now: float = 0.0
    events: int = 0
    order: count[int] = field(default_factory=count)

    def run(self) -> Simulation:
        self.search = Search(self.spec)
        self.record(Started())
        while not self.search.state.over:
            self.dispatch()
            if self.closing:
                self.close(self.closing.pop())
                continue
            self.now, _, trial_key, length = heapq.heappop(self.training)
            self.busy.discard(trial_key)
            self.finish_training(trial_key, length)
        return self.result()

    def record(self, event: Event) -> None:
        pending: Event | None = event
        while pending is not None:
            entry = self.search.record(pending)
            if entry is not None:
                self.events += 1
                if self.on_entry is not None:
                    self.on_entry(entry)
                self.apply(entry)
            pending = self.search.implied_event()

    def apply(self, entry: Entry) -> None:
        for operation in entry.operations:
            if isinstance(operation, Create):
                if len(self.trials) >= self.most_trials:
                    raise invalid_field("spec", f"creates more than {self.most_trials} trials")
                self.trials[operation.trial_key] = SimulatedTrial(len(self.trials), operation.bracket)
                self.hparams[operation.trial_key] = operation.hparams
            elif isinstance(operation, ValidateAfter) and operation.trial_key not in self.busy:
                self.wait(operation.trial_key)
        for action in entry.actions:
            match action:
                case CreateTrial(trial_key) if not self.search.state.trial(trial_key).pending:
                    self.wait(trial_key)  # it runs by itself
                case CloseTrial(trial_key) | StopTrial(trial_key):
                    if trial_key not in self.busy and not self.search.state.trial(trial_key).pending:
                        self.closing.append(trial_key)
                case RunTrial():
                    pass  # its operation ended it

    def wait(self, trial_key: str) -> None:
        self.busy.add(trial_key)
        self.waiting.append(trial_key)

    def dispatch(self) -> None:
        while self.waiting and (not self.slots or len(self.training) < self.slots):
            trial_key = self.waiting.popleft()
            state, trial = self.search.state.trial(trial_key), self.trials[trial_key]
            if state.length and not state.pending:
                # Its operation was of a length that it had trained to: the search completed it by itself.
                self.busy.discard(trial_key)
                if state.closing:
                    self.closing.append(trial_key)
                continue
            if trial.length == 0:
                trial.start = self.now
            length = self.next_length(trial_key)
            heapq.heappush(
                self.training, (self.now + length - trial.length, next(self.order), trial_key, length)
            )

    def next_length(self, trial_key: str) -> int:
        if self.search.state.trial(trial_key).pending:
            return self.search.state.trial(trial_key).length
        trial = self.trials[trial_key]
        if self.spec.time_metric is None:
            return _WHOLE_TRIAL
        lengths = _report_lengths(self.spec, trial.bracket)
        return next((length for length in lengths if length > trial.length), lengths[-1])

    def finish_training(self, trial_key: str, length: int) -> None:
        trial = self.trials[trial_key]
        trial.length = length
        trial.metric = self.curves.metric(trial.number, self.hparams[trial_key], length)
        key = trial.bracket, length
        self.reached[key] = self.reached.get(key, 0) + 1
        if self.search.state.trial(trial_key).pending:
            self.record(ValidationCompleted(trial_key, trial.metric, length))
        elif self.spec.time_metric is not None:
            self.record(ValidationReported(trial_key, trial.metric, length))
        state = self.search.state.trial(trial_key)
        if trial_key in self.busy:
            return
        if state.closing or (state.length == 0 and self.spec.time_metric is None):
            self.close(trial_key)
        elif self.spec.time_metric is not None:
            self.wait(trial_key)

    def close(self, trial_key: str) -> None:
        if self.search.state.trial(trial_key).closed:
            return
        self.trials[trial_key].end = self.now
        del self.hparams[trial_key]
        self.record(TrialClosed(trial_key))

    def result(self) -> Simulation:
        trials = tuple(self.trials.values())
        ended: dict[tuple[int, int], int] = {}
        for trial in trials:
            key = trial.bracket, trial.length
            ended[key] = ended.get(key, 0) + 1
        rungs = [
            RungCount(bracket, length, reached, ended.get((bracket, length), 0))
            for (bracket, length), reached in sorted(self.reached.items())
        ]
        return Simulation(
            trials=trials,
            rungs=tuple(rungs),
            total_units=sum(trial.length for trial in trials),
            duration=self.now,
            events=self.events,
        )


def _report_lengths(spec: SearchSpec, bracket: int) -> list[int]:
    """Returns the values of the time metric at which trials of a time-driven search validate: their rungs."""
    match spec.method:
        case AsyncHalvingSpec() as method:
            halving = method.bracket(smaller_is_better=True)
        case AdaptiveAshaSpec() as method:
            halving = method.brackets(smaller_is_better=True)[bracket]
        case _:
            return [_WHOLE_TRIAL]
    return sorted({halving.length(rung) for rung in range(halving.num_rungs)})
