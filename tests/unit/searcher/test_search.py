"""The search around its method: what it takes, what it refuses, when it ends, what others must do."""

from __future__ import annotations

import json
import math

import pytest
from unit.searcher.harness import Run, drive_in_order

from resolute.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from resolute_searcher.log.actions import CloseTrial, CreateTrial, EndSearch, RunTrial
from resolute_searcher.log.events import (
    ExitReason,
    Started,
    TrialClosed,
    TrialCreated,
    TrialExited,
    TrialFenced,
    ValidationCompleted,
)
from resolute_searcher.log.operations import Close, Create, Promote, Shutdown, ValidateAfter
from resolute_searcher.spec.search import (
    AdaptiveAshaSpec,
    AsyncHalvingSpec,
    GridSpec,
    MethodSpec,
    RandomSpec,
    SearchSpec,
    SingleSpec,
)
from resolute_searcher.state_machine.search import Search, fold

FAILED, REFUSED = ExitReason.ERRORED, ExitReason.INVALID_HP


def started(method: MethodSpec, *, smaller: bool = True) -> tuple[Run, list[str]]:
    run = Run(Search(SearchSpec(method=method, smaller_is_better=smaller)))
    trials = [operation.trial_key for operation in run.record(Started()) if isinstance(operation, Create)]
    return run, trials


def asha(*, trials: int = 12, rungs: int = 3, concurrent: int = 16) -> AsyncHalvingSpec:
    return AsyncHalvingSpec(
        num_rungs=rungs, max_length=9, max_trials=trials, divisor=3, max_concurrent_trials=concurrent
    )


class TestCompletions:
    def test_a_repeated_completion_changes_nothing(self) -> None:  # as release 0.30 does
        run, (trial,) = started(SingleSpec(max_length=10))
        assert run.search.record(ValidationCompleted(trial, 0.5, 10)) is not None
        before = run.search.state.snapshot()
        assert run.search.record(ValidationCompleted(trial, 0.5, 10)) is None
        assert run.search.state.snapshot() == before

    def test_a_repeated_completion_without_a_number_changes_nothing(self) -> None:
        run, (trial,) = started(SingleSpec(max_length=10))
        assert run.search.record(ValidationCompleted(trial, math.nan, 10)) is not None
        assert run.search.record(ValidationCompleted(trial, math.nan, 10)) is None

    def test_a_second_metric_for_the_same_operation_is_refused(self) -> None:  # as release 0.30 does
        run, (trial,) = started(SingleSpec(max_length=10))
        run.record(ValidationCompleted(trial, 0.5, 10))
        with pytest.raises(FailedPreconditionError, match=r"already completed, with metric 0\.5"):
            run.record(ValidationCompleted(trial, 0.6, 10))

    def test_a_wrong_length_is_refused_and_the_right_one_named(self) -> None:  # as release 0.30 does
        run, (trial,) = started(SingleSpec(max_length=10))
        with pytest.raises(FailedPreconditionError, match="is of length 10, not 11"):
            run.record(ValidationCompleted(trial, 0.5, 11))

    def test_a_repeat_is_recognized_after_the_next_operation_came(self) -> None:
        run, trials = started(asha(trials=3))
        for trial in trials:
            run.record(ValidationCompleted(trial, 0.5, 1))
        risen = trials[0]
        assert run.search.state.trial(risen).length == 3
        assert run.search.record(ValidationCompleted(risen, 0.5, 1)) is None
        with pytest.raises(FailedPreconditionError, match="is of length 3, not 1"):
            run.record(ValidationCompleted(risen, 0.6, 1))

    def test_a_trial_that_rises_to_a_rung_of_equal_length_trains_nothing(self) -> None:
        run, trials = started(
            AsyncHalvingSpec(num_rungs=5, max_length=2, max_trials=2, divisor=2, stop_once=True)
        )
        run.record(TrialFenced(trials[0], 1))
        run.record(ValidationCompleted(trials[0], 0.5, 1))
        assert run.lengths[1] == [1, 1, 1, 1, 2]
        assert (run.search.state.trial(trials[0]).length, run.search.state.trial(trials[0]).pending) == (
            2,
            True,
        )
        assert [entry.actions for entry in run.entries[2:]] == [(), (), (), ()]
        assert fold(run.search.state.spec, run.entries).state.snapshot() == run.search.state.snapshot()

    def test_what_follows_by_itself_is_not_forgotten_in_a_crash(self) -> None:
        run, trials = started(asha(trials=3, rungs=4))
        for trial, metric in zip(trials, (0.3, 0.2, 0.1), strict=True):
            run.search.record(ValidationCompleted(trial, metric, 1))
        followed = run.search.implied_event()
        assert followed == ValidationCompleted(trials[2], 0.1, 1)
        other = Search(run.search.state.spec)
        other.state.restore(json.loads(json.dumps(run.search.state.snapshot())))
        assert other.implied_event() == followed

    def test_a_completion_of_an_unknown_trial_is_refused(self) -> None:
        run, _ = started(SingleSpec(max_length=10))
        with pytest.raises(NotFoundError, match="trial nobody is not of this search"):
            run.record(ValidationCompleted("nobody", 0.5, 10))

    def test_a_completion_after_an_exit_is_refused(self) -> None:
        run, (trial,) = started(SingleSpec(max_length=10))
        run.record(TrialExited(trial, FAILED))
        with pytest.raises(FailedPreconditionError, match=r"left the search \(errored\)"):
            run.record(ValidationCompleted(trial, 0.5, 10))

    def test_a_completion_by_an_idle_trial_is_refused(self) -> None:
        run, trials = started(asha())
        run.record(ValidationCompleted(trials[0], 0.5, 1))
        with pytest.raises(FailedPreconditionError, match="has no operation to complete"):
            run.record(ValidationCompleted(trials[0], 0.5, 3))

    @pytest.mark.parametrize("smaller", [True, False])
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_metrics_that_are_no_finite_numbers_are_ordered(
        self, bad: float, smaller: bool
    ) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=3), smaller=smaller)
        run.record(ValidationCompleted(trials[0], bad, 1))
        run.record(ValidationCompleted(trials[1], 0.1, 1))
        operations = run.record(ValidationCompleted(trials[2], 0.2, 1))
        best_of_numbers = trials[1] if smaller else trials[2]
        infinitely_good = bad == (-math.inf if smaller else math.inf)
        assert operations[0] == ValidateAfter(trials[0] if infinitely_good else best_of_numbers, 3)
        json.dumps(run.search.state.snapshot(), allow_nan=False)


class TestEnds:
    def test_the_search_shuts_down_when_all_requested_trials_are_closed(self) -> None:  # as release 0.30 does
        run, trials = started(RandomSpec(max_length=1, max_trials=2))
        for trial in trials:
            run.record(ValidationCompleted(trial, 0.1, 1))
        assert run.record(TrialClosed(trials[0])) == []
        assert run.record(TrialClosed(trials[1])) == [Shutdown(cancel=False, failure=False)]
        assert run.search.state.over
        assert run.search.record(TrialClosed(trials[1])) is None

    @pytest.mark.parametrize(
        ("reasons", "expected"),
        [
            ([ExitReason.ERRORED, ExitReason.ERRORED], Shutdown(failure=True)),
            ([ExitReason.USER_CANCELED, ExitReason.USER_CANCELED], Shutdown(cancel=True)),
            ([ExitReason.ERRORED, ExitReason.USER_CANCELED], Shutdown()),
            ([ExitReason.ERRORED, ExitReason.USER_REQUESTED_STOP], Shutdown()),
        ],
    )
    def test_a_search_fails_or_is_cancelled_only_as_a_whole(  # as release 0.30 does
        self, reasons: list[ExitReason], expected: Shutdown
    ) -> None:
        run, trials = started(RandomSpec(max_length=1, max_trials=2))
        for trial, reason in zip(trials, reasons, strict=True):
            run.record(TrialExited(trial, reason))
            run.record(TrialClosed(trial))
        assert run.shutdown == expected

    def test_the_first_exit_reason_counts(self) -> None:  # as release 0.30 does
        run, (trial,) = started(SingleSpec(max_length=1))
        run.record(TrialExited(trial, ExitReason.USER_CANCELED))
        assert run.search.record(TrialExited(trial, ExitReason.ERRORED)) is None
        run.record(TrialClosed(trial))
        assert run.shutdown == Shutdown(cancel=True)

    def test_a_trial_with_work_cannot_just_be_closed(self) -> None:
        run, trials = started(asha())
        with pytest.raises(FailedPreconditionError, match="report first why it exited"):
            run.record(TrialClosed(trials[0]))
        run.record(ValidationCompleted(trials[0], 0.5, 1))
        with pytest.raises(FailedPreconditionError, match="report first why it exited"):
            run.record(TrialClosed(trials[0]))

    def test_creation_is_noted_once(self) -> None:
        run, (trial,) = started(SingleSpec(max_length=1))
        assert run.search.record(TrialCreated(trial)) is not None
        assert run.search.record(TrialCreated(trial)) is None
        assert run.search.record(Started()) is None


class TestRefusedHyperparameters:
    def test_random_replaces_the_trial_when_it_closes(self) -> None:  # as release 0.30 does
        run, trials = started(RandomSpec(max_length=5, max_trials=2))
        assert run.record(TrialExited(trials[0], REFUSED)) == []
        operations = run.record(TrialClosed(trials[0]))
        assert [type(operation) for operation in operations] == [Create, ValidateAfter, Close]
        assert len(run.numbers) == 3

    @pytest.mark.parametrize("method", [SingleSpec(max_length=5), GridSpec(max_length=5)])
    def test_single_and_grid_do_not_replace_it(self, method: MethodSpec) -> None:  # as release 0.30 does
        run, (trial,) = started(method)
        assert run.record(TrialExited(trial, ExitReason.INIT_INVALID_HP)) == []
        assert run.record(TrialClosed(trial)) == [Shutdown()]

    def test_asha_closes_it_replaces_it_and_forgets_its_metrics(self) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=3))
        for trial in trials:
            run.record(ValidationCompleted(trial, 0.5, 1))
        operations = run.record(TrialExited(trials[0], REFUSED))
        assert operations[0] == Close(trials[0])
        assert isinstance(operations[1], Create)
        assert operations[2] == ValidateAfter(operations[1].trial_key, 1)
        rungs = run.search.state.snapshot()["method"]["rungs"]
        assert trials[0] not in [entry[0] for rung in rungs for entry in rung["entries"]]

    def test_a_rung_that_was_closed_out_reopens_for_the_replacement_only(
        self,
    ) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=3))
        for trial, metric in zip(trials, (0.1, 0.2, 0.3), strict=True):
            operations = run.record(ValidationCompleted(trial, metric, 1))
        assert operations == [ValidateAfter(trials[0], 3), Close(trials[1]), Close(trials[2])]
        replacement = run.record(TrialExited(trials[0], REFUSED))[1]
        assert isinstance(replacement, Create)
        # The best that rests is closed already and must not rise, though there is room for one.
        assert run.record(ValidationCompleted(replacement.trial_key, 0.9, 1)) == [
            Close(replacement.trial_key)
        ]


class TestExitsInAsha:
    def test_an_exited_trial_rises_with_the_worst_metric_and_trains_nothing(
        self,
    ) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=3))
        for trial in trials[:2]:
            assert run.record(TrialExited(trial, FAILED)) == []
        operations = run.record(TrialExited(trials[2], FAILED))
        assert operations == [Promote(trials[0], 1)]
        for trial in trials:
            run.record(TrialClosed(trial))
        assert run.shutdown == Shutdown(failure=True)
        assert run.search.state.progress() == 1.0

    def test_a_resting_trial_that_exits_keeps_its_metric(self) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=4))
        run.record(ValidationCompleted(trials[0], 0.1, 1))
        assert run.record(TrialExited(trials[0], ExitReason.USER_CANCELED)) == []
        run.record(ValidationCompleted(trials[1], 0.2, 1))
        assert run.record(ValidationCompleted(trials[2], 0.3, 1)) == [Promote(trials[0], 1)]

    @pytest.mark.parametrize("stop_once", [True, False])
    def test_a_failure_makes_room_for_another_trial(self, stop_once: bool) -> None:  # as release 0.30 does
        method = AsyncHalvingSpec(
            num_rungs=2, max_length=9, max_trials=5, max_concurrent_trials=1, stop_once=stop_once
        )
        run, (trial,) = started(method)
        created, given = run.record(TrialExited(trial, FAILED))
        assert isinstance(created, Create)
        assert given == ValidateAfter(created.trial_key, 2)


class TestActions:
    def test_a_new_search_creates_trials_and_says_which_can_end(self) -> None:  # as release 0.30 does
        run, (trial,) = started(SingleSpec(max_length=10))
        create, close = run.entries[0].actions
        assert isinstance(create, CreateTrial)
        assert (create.trial_key, create.hparams) == (trial, {})
        assert close == CloseTrial(trial)
        assert run.entries[0].last_action == 2

    def test_created_trials_start_from_the_source_checkpoint(self) -> None:  # as release 0.30 does
        spec = SearchSpec(method=SingleSpec(max_length=10), source_checkpoint_id="c0ffee")
        entry = Search(spec).record(Started())
        assert entry is not None
        assert isinstance(entry.actions[0], CreateTrial)
        assert entry.actions[0].checkpoint_id == "c0ffee"

    def test_an_idle_trial_is_told_to_run_again_when_it_is_promoted(self) -> None:  # as release 0.30 does
        run, trials = started(asha(trials=3))
        run.record(ValidationCompleted(trials[0], 0.1, 1))
        run.record(TrialFenced(trials[0], 2))
        run.record(ValidationCompleted(trials[1], 0.2, 1))
        run.record(ValidationCompleted(trials[2], 0.3, 1))
        assert run.entries[-1].actions[0] == RunTrial(trials[0], 3)
        assert not run.search.state.trial(trials[0]).idle

    def test_a_trial_whose_run_was_not_sealed_needs_no_telling(self) -> None:
        run, trials = started(asha(trials=3))
        for trial, metric in zip(trials, (0.1, 0.2, 0.3), strict=True):
            run.record(ValidationCompleted(trial, metric, 1))
        assert ValidateAfter(trials[0], 3) in run.entries[-1].operations
        assert not any(isinstance(action, RunTrial) for action in run.entries[-1].actions)
        # Its exit finds the new work by sealing.
        run.record(TrialFenced(trials[0], 2))
        assert run.search.state.trial(trials[0]).pending
        assert not run.search.state.trial(trials[0]).idle

    def test_the_floor_of_runs_never_falls(self) -> None:
        run, (trial,) = started(SingleSpec(max_length=10))
        run.record(TrialFenced(trial, 3))
        assert run.search.record(TrialFenced(trial, 3)) is None
        assert run.search.record(TrialFenced(trial, 1)) is None
        assert run.search.state.trial(trial).min_run == 3

    def test_the_shutdown_is_the_last_action(self) -> None:
        run = drive_in_order(Search(SearchSpec(method=AdaptiveAshaSpec(max_length=9, max_trials=5))), float)
        assert run.entries[-1].actions == (EndSearch(cancel=False, failure=False),)
        numbers = [entry.last_action for entry in run.entries]
        assert numbers == sorted(numbers)
        assert numbers[-1] == sum(len(entry.actions) for entry in run.entries)


class TestProgress:
    def test_what_trials_say_counts_until_they_end(self) -> None:  # as release 0.30 does
        run, trials = started(RandomSpec(max_length=10, max_trials=4))
        run.search.state.reach(trials[0], 5.0)
        run.search.state.reach(trials[1], math.nan)
        run.search.state.reach(trials[2], -3.0)
        run.search.state.reach(trials[3], 1000.0)
        assert run.search.state.reached(trials[1]) == 0.0
        assert run.search.state.progress() == pytest.approx(15 / 40)
        run.record(TrialExited(trials[3], FAILED))
        run.record(TrialClosed(trials[3]))
        run.search.state.reach(trials[3], 1.0)
        assert run.search.state.progress() == pytest.approx(15 / 40)

    def test_an_unknown_trial_has_no_progress(self) -> None:
        run, _ = started(SingleSpec(max_length=10))
        with pytest.raises(NotFoundError):
            run.search.state.reach("nobody", 1.0)


class TestLogs:
    def test_entries_must_follow_each_other(self) -> None:
        run, _ = started(SingleSpec(max_length=10))
        with pytest.raises(ValueError, match="entry 1 cannot follow entry 1"):
            run.search.apply(run.entries[0])

    def test_a_search_rebuilt_in_the_middle_goes_on_alike(self) -> None:  # as release 0.30 does
        spec = SearchSpec(method=AdaptiveAshaSpec(max_length=64, max_trials=20), seed=9)
        whole = drive_in_order(Search(spec), lambda trial: float(7 * trial % 17))
        for cut in range(0, len(whole.entries), 7):
            rebuilt = fold(spec, whole.entries[:cut])
            for entry in whole.entries[cut:]:
                assert rebuilt.record(entry.event) == entry


@pytest.mark.parametrize(
    ("method", "complaint"),
    [
        (SingleSpec(max_length=0), f"searcher.max_length: must be from 1 to {2**42}, not 0"),
        (RandomSpec(max_length=1, max_trials=0), "searcher.max_trials: must be from 1 to 1000000, not 0"),
        (RandomSpec(max_length=1, max_trials=1, max_concurrent_trials=-1), "must not be below 0"),
        (
            RandomSpec(max_length=1, max_trials=1_000_000, max_concurrent_trials=0),
            "must be from 1 to 20000 when there are 1000000 trials",
        ),
        (AsyncHalvingSpec(num_rungs=0, max_length=1, max_trials=1), "searcher.num_rungs: must be from 1"),
        (AdaptiveAshaSpec(max_length=1, max_trials=1, divisor=1.0), "searcher.divisor: must be above 1"),
        (AdaptiveAshaSpec(max_length=1, max_trials=1, divisor=math.nan), "searcher.divisor: must be above 1"),
        (
            AdaptiveAshaSpec(max_length=1, max_trials=1, bracket_rungs=(0,)),
            "bracket_rungs[0]: must be from 1",
        ),
        (AdaptiveAshaSpec(max_length=1, max_trials=1, time_driven=True), "time_metric: must be given"),
    ],
)
def test_a_wrong_spec_is_refused(method: MethodSpec, complaint: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        SearchSpec(method=method).check()
    assert complaint in str(caught.value)


def test_a_wrong_spec_lists_all_that_is_wrong() -> None:
    spec = SearchSpec(
        method=AdaptiveAshaSpec(max_length=0, max_trials=0, divisor=0.5), metric="", time_metric="batches"
    )
    with pytest.raises(InvalidArgumentError) as caught:
        spec.check()
    assert {violation.field for violation in caught.value.violations} == {
        "searcher.metric",
        "searcher.max_length",
        "searcher.max_trials",
        "searcher.divisor",
        "searcher.time_metric",
    }
