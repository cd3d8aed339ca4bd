"""Asynchronous successive halving, rule by rule, and beside a second, plain writing of its rules."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.searcher.harness import Run

from resolute_searcher.log.events import ExitReason, Started, TrialClosed, TrialExited, ValidationCompleted
from resolute_searcher.log.operations import Close, Create, Operation, Promote, ValidateAfter
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.search import AsyncHalvingSpec, SearchSpec
from resolute_searcher.state_machine.search import Search

WORST = sys.float_info.max


def begun(
    *,
    rungs: int = 3,
    length: int = 9,
    trials: int = 12,
    concurrent: int = 16,
    stop_once: bool = False,
    smaller: bool = True,
) -> tuple[Run, list[str]]:
    method = AsyncHalvingSpec(
        num_rungs=rungs,
        max_length=length,
        max_trials=trials,
        divisor=3,
        max_concurrent_trials=concurrent,
        stop_once=stop_once,
    )
    run = Run(Search(SearchSpec(method=method, smaller_is_better=smaller)))
    started = run.record(Started())
    return run, [operation.trial_key for operation in started if isinstance(operation, Create)]


def told(run: Run, trial_key: str, metric: float) -> list[Operation]:
    return run.record(ValidationCompleted(trial_key, metric, run.search.state.trial(trial_key).length))


@pytest.mark.parametrize(  # as release 0.30 does
    ("rungs", "longest", "divisor", "lengths"),
    [
        (3, 9000, 3, [1000, 3000, 9000]),
        (4, 10, 3, [1, 1, 3, 10]),
        (3, 64, 4, [4, 16, 64]),
        (3, 10, 2.5, [1, 4, 10]),
        (1, 7, 4, [7]),
    ],
)
def test_rungs_have_absolute_lengths_of_one_at_least(
    rungs: int, longest: int, divisor: float, lengths: list[int]
) -> None:
    halving = Halving(num_rungs=rungs, max_length=longest, max_trials=1, divisor=divisor)
    assert [halving.length(rung) for rung in range(rungs)] == lengths


@pytest.mark.parametrize(  # as release 0.30 does
    ("concurrent", "trials", "initial_trials"), [(4, 12, 4), (16, 12, 12), (0, 12, 9), (0, 5, 5), (1, 1, 1)]
)
@pytest.mark.parametrize("stop_once", [False, True])
def test_it_begins_with_what_may_run_at_once(
    concurrent: int, trials: int, initial_trials: int, stop_once: bool
) -> None:
    run, started = begun(concurrent=concurrent, trials=trials, stop_once=stop_once)
    assert len(started) == initial_trials
    assert run.in_order() == [[1]] * initial_trials


def test_a_report_lifts_itself_or_the_one_that_it_made_room_for() -> None:  # as release 0.30 does
    run, (a, b, c, d, e, f, *_) = begun()
    assert told(run, a, 0.2) == []
    assert told(run, b, 0.3) == []
    # The third makes room for one: not for itself, but for the best, which came first.
    assert told(run, c, 0.4) == [ValidateAfter(a, 3)]
    # It is among the best one now, though no room was added: it rises.
    assert told(run, d, 0.1) == [ValidateAfter(d, 3)]
    assert told(run, e, 0.5) == []
    # Room for a second: the second best is the first, which rose already, and nobody else may.
    assert told(run, f, 0.6) == []


def test_an_equal_metric_stands_behind_those_that_came_before() -> None:  # as release 0.30 does
    run, (a, b, c, d, *_) = begun()
    for trial in (a, b):
        told(run, trial, 0.5)
    assert told(run, c, 0.5) == [ValidateAfter(a, 3)]
    assert told(run, d, 0.5) == []


def test_larger_metrics_can_be_better() -> None:  # as release 0.30 does
    run, (a, b, c, *_) = begun(smaller=False)
    told(run, a, 0.2)
    told(run, b, 0.3)
    assert told(run, c, 0.1) == [ValidateAfter(b, 3)]


def test_at_the_top_a_trial_is_closed() -> None:  # as release 0.30 does
    run, trials = begun(rungs=1, trials=2)
    assert told(run, trials[0], 0.5) == [Close(trials[0])]
    assert told(run, trials[1], 0.1) == [Close(trials[1])]


def test_a_report_that_trains_nobody_on_begins_a_trial() -> None:  # as release 0.30 does
    run, (a, b) = begun(trials=4, concurrent=2)
    created, given = told(run, a, 0.1)
    assert isinstance(created, Create)
    assert given == ValidateAfter(created.trial_key, 1)
    told(run, b, 0.2)
    # The third report trains the best on, and so begins no other; the fourth trial was the last anyway.
    assert told(run, created.trial_key, 0.3) == [ValidateAfter(a, 3)]
    assert len(run.numbers) == 4
    assert told(run, a, 0.1) == []


def test_a_full_bottom_closes_those_who_rest_on_rungs_where_nobody_works() -> None:  # as release 0.30 does
    run, (a, b, c, d, e, f) = begun(trials=6)
    for trial, metric in ((a, 0.1), (b, 0.2), (c, 0.3), (d, 0.4), (e, 0.5)):
        told(run, trial, metric)
    # The last at the bottom: b rises, all others there end, but a, which works on the rung above.
    assert told(run, f, 0.6) == [ValidateAfter(b, 3), Close(c), Close(d), Close(e), Close(f)]
    assert told(run, a, 0.1) == []
    assert told(run, b, 0.2) == [Close(a), Close(b)]


def test_a_trial_that_left_counts_as_the_worst_and_takes_that_along() -> None:  # as release 0.30 does
    run, (a, b, c, *_) = begun(trials=3, rungs=2)
    run.record(TrialExited(a, ExitReason.ERRORED))
    run.record(TrialExited(b, ExitReason.USER_CANCELED))
    # The third at the bottom makes room for one, the first of three equals: it trains nothing at the top.
    assert run.record(TrialExited(c, ExitReason.ERRORED)) == [Promote(a, 1)]
    rungs = run.search.state.snapshot()["method"]["rungs"]
    assert [[metric for _, metric, _ in rung["entries"]] for rung in rungs] == [[WORST] * 3, [WORST]]


def test_who_left_among_the_best_lets_nobody_train_on() -> None:  # as release 0.30 does
    run, (a, b, c, *_) = begun(trials=4)
    told(run, a, 0.1)
    run.record(TrialExited(a, ExitReason.ERRORED))
    told(run, b, 0.2)
    assert told(run, c, 0.3) == [Promote(a, 1)]


def test_refused_hyperparameters_are_as_if_they_had_never_been() -> None:  # as release 0.30 does
    run, (a, b, c) = begun(trials=5, concurrent=3)
    told(run, a, 0.1)
    close, created, given = run.record(TrialExited(a, ExitReason.INVALID_HP))
    assert close == Close(a)
    assert isinstance(created, Create)
    assert given == ValidateAfter(created.trial_key, 1)
    assert run.search.state.snapshot()["method"]["invalid"] == 1
    told(run, b, 0.3)
    told(run, c, 0.2)
    # Three have reported, with the one that was refused it would be four.
    assert told(run, created.trial_key, 0.4) == [ValidateAfter(c, 3)]


@pytest.mark.parametrize("stop_once", [False, True])
def test_progress_is_of_the_bottom_then_of_the_ends(stop_once: bool) -> None:  # as release 0.30 does
    run, trials = begun(trials=4, rungs=2, stop_once=stop_once)
    for number, trial in enumerate(trials, start=1):
        told(run, trial, number / 10)
        assert run.search.state.progress() == pytest.approx(number / (1.2 * 4))
    for trial in trials:
        if run.search.state.trial(trial).pending:
            told(run, trial, 0.1)
    for number, trial in enumerate(trials, start=1):
        run.record(TrialClosed(trial))
        assert run.search.state.progress() == pytest.approx(max(4 / (1.2 * 4), number / 4))


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 20), st.integers(1, 6), st.booleans(), st.integers(0, 10**6))
def test_no_more_work_at_once_than_allowed(  # as release 0.30 does
    rungs: int, trials: int, concurrent: int, stop_once: bool, seed: int
) -> None:
    run, _ = begun(rungs=rungs, length=81, trials=trials, concurrent=concurrent, stop_once=stop_once)
    choice = random.Random(seed)
    while pending := [one for one, trial in run.search.state.trials.items() if trial.pending]:
        assert len(pending) <= concurrent
        chosen = choice.choice(pending)
        if choice.random() < 0.1:
            run.record(TrialExited(chosen, ExitReason.ERRORED))
        else:
            told(run, chosen, choice.random())


class TestStopping:
    def test_the_first_on_a_rung_goes_on_and_the_newest_of_equals_stands_first(
        self,
    ) -> None:  # as release 0.30 does
        run, (a, b, c, *_) = begun(stop_once=True)
        assert told(run, a, 0.5) == [ValidateAfter(a, 3)]
        assert told(run, b, 0.5) == [ValidateAfter(b, 3)]
        assert told(run, c, 0.6)[0] == Close(c)

    def test_more_go_on_as_more_report(self) -> None:  # as release 0.30 does
        run, trials = begun(stop_once=True)
        for trial in trials[:5]:
            told(run, trial, 0.1 + run.numbers[trial] / 10)
        # Of six reports the best two continue.
        assert told(run, trials[5], 0.25) == [ValidateAfter(trials[5], 3)]

    def test_a_trial_that_stops_makes_room_for_another(self) -> None:  # as release 0.30 does
        run, (a,) = begun(trials=2, concurrent=1, rungs=1, stop_once=True)
        close, created, given = told(run, a, 0.5)
        assert close == Close(a)
        assert isinstance(created, Create)
        assert given == ValidateAfter(created.trial_key, 9)
        assert [type(one) for one in told(run, created.trial_key, 0.1)] == [Close]

    def test_an_exit_is_the_worst_on_its_own_rung_only(self) -> None:  # as release 0.30 does
        run, trials = begun(stop_once=True)
        for trial in trials[:3]:
            run.record(TrialExited(trial, ExitReason.ERRORED))
        rungs = run.search.state.snapshot()["method"]["rungs"]
        assert [len(rung["entries"]) for rung in rungs] == [3, 0, 0]

    def test_refused_hyperparameters_are_replaced(self) -> None:  # as release 0.30 does
        run, (a, b) = begun(trials=2, concurrent=2, stop_once=True)
        told(run, a, 0.1)
        close, created, _ = run.record(TrialExited(a, ExitReason.INIT_INVALID_HP))
        assert close == Close(a)
        assert isinstance(created, Create)
        # Nothing of the refused trial is left on the rung: this one is the first there.
        assert told(run, b, 9.0) == [ValidateAfter(b, 3)]


@dataclass
class Plain:
    """The documented rules in sorted lists, written down as they are read."""

    rungs: int
    trials: int
    divisor: float
    stop_once: bool
    metrics: list[list[tuple[float, str]]] = field(default_factory=list)
    risen: list[set[str]] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    working: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.metrics = [[] for _ in range(self.rungs)]
        self.risen = [set() for _ in range(self.rungs)]
        self.working = [0] * self.rungs

    def begin(self, trial_key: str) -> None:
        self.at[trial_key] = 0
        self.working[0] += 1

    def report(self, trial_key: str, metric: float) -> tuple[str | None, bool, set[str]]:
        """Returns who trains on, whether a trial begins, and who is closed."""
        rung = self.at[trial_key]
        self.working[rung] -= 1
        found = self.metrics[rung]
        before = len(found)
        values = [value for value, _ in found]
        if self.stop_once:
            place = next((i for i, value in enumerate(values) if value >= metric), before)
        else:
            place = next((i for i, value in enumerate(values) if value > metric), before)
        found.insert(place, (metric, trial_key))
        room, room_before = math.floor((before + 1) / self.divisor), math.floor(before / self.divisor)
        trains, closes = None, set[str]()
        if rung == self.rungs - 1:
            closes.add(trial_key)
        elif self.stop_once:
            if place < max(room, 1):
                trains = trial_key
            else:
                closes.add(trial_key)
        elif place < room:
            trains = trial_key
        elif room != room_before and found[room_before][1] not in self.risen[rung]:
            trains = found[room_before][1]
        if trains is not None:
            self.risen[rung].add(trains)
            self.at[trains] = rung + 1
            self.working[rung + 1] += 1
        begins = trains is None and len(self.at) < self.trials
        if not self.stop_once and len(self.metrics[0]) == self.trials:
            closes |= self.resting()
        self.closed |= closes
        return trains, begins, closes

    def resting(self) -> set[str]:
        """Who rests below the first rung where somebody works."""
        found = set[str]()
        for number in range(self.rungs):
            if self.working[number]:
                break
            found |= {one for _, one in self.metrics[number]} - self.risen[number] - self.closed
        return found


@settings(max_examples=200)
@given(
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(1, 8),
    st.sampled_from([1.5, 2.0, 3.0, 4.0]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_decisions_are_those_of_the_plain_rules(  # as release 0.30 does
    rungs: int, trials: int, concurrent: int, divisor: float, stop_once: bool, seed: int
) -> None:
    method = AsyncHalvingSpec(
        num_rungs=rungs,
        # Long enough that no two rungs have the same length.
        max_length=1000,
        max_trials=trials,
        divisor=divisor,
        max_concurrent_trials=concurrent,
        stop_once=stop_once,
    )
    search, plain, choice = (
        Search(SearchSpec(method=method)),
        Plain(rungs, trials, divisor, stop_once),
        random.Random(seed),
    )
    run = Run(search)
    for operation in run.record(Started()):
        if isinstance(operation, Create):
            plain.begin(operation.trial_key)
    assert len(plain.at) == min(trials, concurrent)
    while pending := [one for one, trial in search.state.trials.items() if trial.pending]:
        chosen = choice.choice(pending)
        metric = choice.choice([0.25, 0.5, choice.random()])
        operations = run.record(ValidationCompleted(chosen, metric, search.state.trial(chosen).length))
        trains, begins, closes = plain.report(chosen, metric)
        new = [operation.trial_key for operation in operations if isinstance(operation, Create)]
        assert len(new) == begins
        given = [operation.trial_key for operation in operations if isinstance(operation, ValidateAfter)]
        assert given == ([trains] if trains else []) + new
        assert {operation.trial_key for operation in operations if isinstance(operation, Close)} == closes
        for one in new:
            plain.begin(one)
    assert len(plain.at) == trials
    assert plain.closed == set(plain.at)
