"""Searches that validation reports drive: trials run by themselves and are stopped."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

import pytest
from unit.searcher.harness import Run

from resolute.errors import FailedPreconditionError, InvalidArgumentError
from resolute_searcher.log.events import (
    ExitReason,
    Started,
    TrialClosed,
    TrialCreated,
    TrialExited,
    ValidationReported,
)
from resolute_searcher.log.operations import Create, Operation, Promote, Shutdown, Stop
from resolute_searcher.spec.halving import Halving
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.state_machine.search import Search, fold


def timed(
    *, rungs: int = 3, max_time: int = 900, trials: int = 10, divisor: float = 3, concurrent: int = 3
) -> Search:
    method = AsyncHalvingSpec(
        num_rungs=rungs,
        max_length=max_time,
        max_trials=trials,
        divisor=divisor,
        max_concurrent_trials=concurrent,
        time_driven=True,
    )
    spec = SearchSpec(method=method, metric="loss", time_metric="batches")
    spec.check()
    return Search(spec)


def drive(search: Search, metric: Callable[[int], float], *, period: int) -> tuple[Run, Counter[int]]:
    """Lets trials train side by side, validating every period; gives at which times they were stopped."""
    run = Run(search)
    stopped: Counter[int] = Counter()
    times: dict[str, int] = {}
    running: deque[str] = deque()

    def take(operations: list[Operation]) -> None:
        for operation in operations:
            if isinstance(operation, Create):
                run.record(TrialCreated(operation.trial_key))
                running.append(operation.trial_key)
            elif isinstance(operation, Stop):
                stopped[times[operation.trial_key]] += 1

    take(run.record(Started()))
    while running:
        trial_key = running.popleft()
        times[trial_key] = times.get(trial_key, 0) + period
        take(
            run.record(ValidationReported(trial_key, metric(run.numbers[trial_key]), float(times[trial_key])))
        )
        if search.state.trial(trial_key).closing:
            take(run.record(TrialClosed(trial_key)))
        else:
            running.appendleft(trial_key)
    assert fold(search.state.spec, run.entries).state.snapshot() == search.state.snapshot()
    return run, stopped


@pytest.mark.parametrize(
    ("rungs", "max_time", "divisor", "boundaries"),
    [(3, 9, 3, [1, 3, 9]), (4, 10, 2, [1, 2, 5, 10]), (3, 900, 3, [100, 300, 900])],
)
def test_rung_boundaries_are_as_documented(  # as release 0.30 does
    rungs: int, max_time: int, divisor: float, boundaries: list[int]
) -> None:
    halving = Halving(num_rungs=rungs, max_length=max_time, max_trials=1, divisor=divisor)
    assert [halving.length(rung) for rung in range(rungs)] == boundaries


def test_only_the_first_of_worsening_trials_reaches_the_top() -> None:  # as release 0.30 does
    search = timed()
    run, stopped = drive(search, float, period=50)
    assert stopped == {100: 9, 900: 1}
    assert run.shutdown == Shutdown()
    assert search.state.progress() == 1.0
    assert len(run.numbers) == 10


def test_adaptive_brackets_stop_on_their_own_rungs() -> None:  # as release 0.30 does
    method = AdaptiveAshaSpec(
        max_length=90, max_trials=9, divisor=3, max_concurrent_trials=3, time_driven=True
    )
    search = Search(SearchSpec(method=method, time_metric="epochs"))
    run, _ = drive(search, float, period=10)
    ends: dict[int, Counter[str]] = {0: Counter(), 1: Counter()}
    state = search.state.snapshot()["method"]
    for create in run.creates:
        rung = state["brackets"][create.bracket]["trials"][create.trial_key][0]
        ends[create.bracket][("10", "30", "90")[rung + create.bracket]] += 1
    assert ends == {0: {"10": 5, "90": 1}, 1: {"30": 2, "90": 1}}


def test_one_report_can_reach_several_rungs() -> None:  # as release 0.30 does
    search = timed()
    run = Run(search)
    first = run.record(Started())[0]
    assert isinstance(first, Create)
    assert run.record(ValidationReported(first.trial_key, 0.5, 350.0)) == [
        Promote(first.trial_key, 1),
        Promote(first.trial_key, 2),
    ]
    operations = run.record(ValidationReported(first.trial_key, 0.5, 901.0))
    assert operations[0] == Stop(first.trial_key)
    assert isinstance(operations[1], Create)


def test_a_trial_is_judged_when_it_arrives_and_not_again() -> None:  # as release 0.30 does
    search = timed(concurrent=10)
    run = Run(search)
    trials = [operation.trial_key for operation in run.record(Started()) if isinstance(operation, Create)]
    run.record(ValidationReported(trials[0], 5.0, 100.0))
    for better in trials[1:4]:
        run.record(ValidationReported(better, 1.0, 100.0))
    assert run.record(ValidationReported(trials[0], 5.0, 200.0)) == []
    assert not search.state.trial(trials[0]).closing


def test_reports_after_a_stop_change_nothing_more() -> None:
    search = timed(trials=2, concurrent=2)
    run = Run(search)
    first, second = (o.trial_key for o in run.record(Started()) if isinstance(o, Create))
    run.record(ValidationReported(first, 1.0, 100.0))
    assert run.record(ValidationReported(second, 2.0, 100.0)) == [Stop(second)]
    assert run.record(ValidationReported(second, 0.1, 200.0)) == []
    assert run.record(TrialExited(second, ExitReason.ERRORED)) == []
    assert search.state.trial(second).closing


def test_a_trial_that_is_done_by_itself_makes_room_for_another() -> None:
    search = timed(trials=4, concurrent=1)
    run = Run(search)
    (first,) = run.record(Started())
    assert isinstance(first, Create)
    (second,) = run.record(TrialClosed(first.trial_key))
    assert isinstance(second, Create)


def test_a_refused_trial_is_replaced_beyond_the_budget() -> None:  # as release 0.30 does
    search = timed(trials=2, concurrent=2)
    run = Run(search)
    first, second = (o.trial_key for o in run.record(Started()) if isinstance(o, Create))
    run.record(ValidationReported(first, 1.0, 150.0))
    (third,) = run.record(TrialExited(first, ExitReason.INVALID_HP))
    assert isinstance(third, Create)
    assert run.record(TrialClosed(first)) == []
    # The refused trial's metric is gone from the rung, so this one is the first there.
    assert run.record(ValidationReported(second, 9.0, 100.0)) == [Promote(second, 1)]


def test_a_failed_trial_stands_with_the_worst_metric() -> None:
    search = timed(trials=3, concurrent=2)
    run = Run(search)
    first, second = (o.trial_key for o in run.record(Started()) if isinstance(o, Create))
    (third,) = run.record(TrialExited(first, ExitReason.ERRORED))
    assert isinstance(third, Create)
    assert run.record(ValidationReported(second, 1e9, 100.0)) == [Promote(second, 1)]


def test_reports_are_taken_once_by_run_source_and_position() -> None:
    search = timed()
    run = Run(search)
    first = run.record(Started())[0]
    assert isinstance(first, Create)

    def report(position: int, *, source: str = "a", of_run: int = 1) -> ValidationReported:
        return ValidationReported(first.trial_key, 1.0, 10.0, run=of_run, source=source, position=position)

    assert search.record(report(0)) is not None
    assert search.record(report(0)) is None
    assert search.record(report(4)) is not None
    assert search.record(report(3)) is None
    assert search.record(report(0, source="b")) is not None
    assert search.record(report(0, of_run=2)) is not None
    assert search.record(report(4)) is None


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -1.0])
def test_a_time_that_is_no_time_is_refused(time: float) -> None:  # as release 0.30 does
    search = timed()
    entry = search.record(Started())
    assert entry is not None
    first = entry.operations[0]
    assert isinstance(first, Create)
    with pytest.raises(InvalidArgumentError, match="as batches, which must be a finite number"):
        search.record(ValidationReported(first.trial_key, 1.0, time))


def test_reports_to_a_search_by_operations_are_refused() -> None:
    search = Search(SearchSpec(method=SingleSpec(max_length=1)))
    entry = search.record(Started())
    assert entry is not None
    first = entry.operations[0]
    assert isinstance(first, Create)
    with pytest.raises(FailedPreconditionError, match="do not drive this search"):
        search.record(ValidationReported(first.trial_key, 1.0, 1.0))


def test_random_trials_without_a_length_run_until_they_are_done() -> None:
    search = Search(SearchSpec(method=RandomSpec(max_length=None, max_trials=3, max_concurrent_trials=2)))
    run = Run(search)
    waiting = deque(run.record(Started()))
    assert len(waiting) == 2
    while waiting:
        operation = waiting.popleft()
        if isinstance(operation, Create):
            search.state.reach(operation.trial_key, 0.5)
            waiting += run.record(TrialClosed(operation.trial_key))
    assert len(run.numbers) == 3
    assert run.shutdown == Shutdown()
    assert search.state.progress() == 1.0
