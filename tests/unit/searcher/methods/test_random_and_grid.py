"""Searches whose trials know nothing of each other (random, single, grid), and what every search shares."""

from __future__ import annotations

import math
from uuid import UUID

import pytest
from unit.searcher.harness import Run

from resolute_searcher.log.events import ExitReason, Started, TrialClosed, TrialExited, ValidationCompleted
from resolute_searcher.log.operations import Close, Create, Shutdown, ValidateAfter
from resolute_searcher.methods.base import Sampler
from resolute_searcher.rng import RandomStream
from resolute_searcher.spec.search import GridSpec, MethodSpec, RandomSpec, SearchSpec, SingleSpec
from resolute_searcher.spec.space import Categorical, Const, DoubleRange, IntRange, LogRange, Space
from resolute_searcher.state_machine.search import Search

SIX = Space({"a": IntRange(0, 2, count=3), "b": Categorical(("x", "y"))})


def begun(method: MethodSpec, *, space: Space | None = None, seed: int = 0) -> tuple[Run, list[str]]:
    run = Run(Search(SearchSpec(method=method, space=space or Space(), seed=seed)))
    started = run.record(Started())
    return run, [operation.trial_key for operation in started if isinstance(operation, Create)]


def finish(run: Run, trial_key: str) -> list[str]:
    """Trains a trial to its end; gives the trials that this begins."""
    run.record(ValidationCompleted(trial_key, 0.5, run.search.state.trial(trial_key).length))
    ended = run.record(TrialClosed(trial_key))
    return [operation.trial_key for operation in ended if isinstance(operation, Create)]


def refuse(run: Run, trial_key: str) -> list[str]:
    """Ends a trial that refuses its hyperparameters; gives the trials that this begins."""
    operations = run.record(TrialExited(trial_key, ExitReason.INVALID_HP))
    operations += run.record(TrialClosed(trial_key))
    return [operation.trial_key for operation in operations if isinstance(operation, Create)]


class TestOperations:
    def test_trials_have_random_uuids_and_small_seeds(self) -> None:  # as release 0.30 does
        run, trials = begun(RandomSpec(max_length=5, max_trials=30, max_concurrent_trials=0))
        assert {UUID(trial).version for trial in trials} == {4}
        assert {str(UUID(trial)) for trial in trials} == set(trials)
        seeds = [create.trial_seed for create in run.creates]
        assert len(set(seeds)) == 30
        assert all(0 <= seed < 2**31 for seed in seeds)

    def test_the_state_counts_all_that_a_search_is_judged_by(self) -> None:  # as release 0.30 does
        run, (a, b, c) = begun(RandomSpec(max_length=5, max_trials=3))
        run.record(TrialExited(a, ExitReason.ERRORED))
        run.record(TrialExited(b, ExitReason.USER_CANCELED))
        run.record(TrialClosed(b))
        state = run.search.state.snapshot()
        counts = {name: state[name] for name in ("requested", "closed", "failures", "cancels", "over")}
        assert counts == {"requested": 3, "closed": 1, "failures": 1, "cancels": 1, "over": False}
        assert set(state["trials"]) == {a, b, c}
        assert state["draws"] > 0

    @pytest.mark.parametrize("reason", list(ExitReason))
    def test_only_refused_trials_leave_the_progress(self, reason: ExitReason) -> None:  # as release 0.30 does
        run, (trial, _) = begun(RandomSpec(max_length=10, max_trials=2))
        run.search.state.reach(trial, 5.0)
        run.record(TrialExited(trial, reason))
        assert dict(run.search.state.reached_by_trial) == ({} if reason.invalid else {trial: 5.0})
        state = run.search.state.snapshot()
        assert state["failures"] == (reason is ExitReason.ERRORED)
        assert state["cancels"] == (reason is ExitReason.USER_CANCELED)


class TestRandom:
    @pytest.mark.parametrize(("concurrent", "initial_trials"), [(0, 7), (3, 3), (20, 7)])
    def test_as_many_begin_as_may_run_at_once(
        self, concurrent: int, initial_trials: int
    ) -> None:  # as release 0.30 does
        run, trials = begun(RandomSpec(max_length=5, max_trials=7, max_concurrent_trials=concurrent))
        assert len(trials) == initial_trials
        kinds = [type(operation) for operation in run.entries[0].operations]
        assert kinds == [Create, ValidateAfter, Close] * initial_trials

    def test_each_end_begins_another_until_all_were(self) -> None:  # as release 0.30 does
        run, (a, b) = begun(RandomSpec(max_length=5, max_trials=3, max_concurrent_trials=2))
        (c,) = finish(run, a)
        assert finish(run, b) == []
        assert finish(run, c) == []
        assert run.shutdown == Shutdown()

    def test_who_failed_counts_and_who_refused_is_replaced(self) -> None:  # as release 0.30 does
        run, (a, b) = begun(RandomSpec(max_length=5, max_trials=2))
        assert run.record(TrialExited(a, ExitReason.ERRORED)) == []
        assert run.record(TrialClosed(a)) == []
        (c,) = refuse(run, b)
        assert finish(run, c) == []
        assert run.shutdown == Shutdown()

    def test_progress_is_trained_of_planned_units(self) -> None:  # as release 0.30 does
        run, (a, b, c, d) = begun(RandomSpec(max_length=10, max_trials=4))
        run.search.state.reach(a, 4.0)
        run.search.state.reach(b, 8.0)
        assert run.search.state.progress() == pytest.approx(12 / 40)
        finish(run, a)
        assert run.search.state.progress() == pytest.approx(18 / 40)
        refuse(run, b)
        assert run.search.state.progress() == pytest.approx(10 / 40)
        run.search.state.reach(c, math.nan)
        run.record(TrialExited(d, ExitReason.ERRORED))
        run.record(TrialClosed(d))
        assert run.search.state.progress() == pytest.approx(20 / 40)


def test_a_single_trial_is_not_replaced() -> None:  # as release 0.30 does
    run, (trial,) = begun(SingleSpec(max_length=10))
    run.search.state.reach(trial, 5.0)
    assert run.search.state.progress() == 0.5
    assert refuse(run, trial) == []
    assert run.shutdown == Shutdown()


class TestGrid:
    def test_points_are_taken_from_the_end_of_the_list(self) -> None:  # as release 0.30 does
        run, trials = begun(GridSpec(max_length=5, max_concurrent_trials=2), space=SIX)
        while trials:
            trials += finish(run, trials.pop(0))
        points = [create.hparams for create in run.creates]
        assert points == [{"a": a, "b": b} for a in (2, 1, 0) for b in ("y", "x")]
        assert run.shutdown == Shutdown()

    def test_a_refused_point_is_complete_and_not_replaced(self) -> None:  # as release 0.30 does
        run, trials = begun(GridSpec(max_length=5), space=SIX)
        assert len(trials) == 6
        assert refuse(run, trials[0]) == []
        for trial in trials[1:]:
            finish(run, trial)
        assert len(run.creates) == 6
        assert run.shutdown == Shutdown()

    def test_progress_is_trained_of_planned_units(self) -> None:  # as release 0.30 does
        run, trials = begun(GridSpec(max_length=10, max_concurrent_trials=2), space=SIX)
        run.search.state.reach(trials[0], 3.0)
        finish(run, trials[1])
        assert run.search.state.progress() == pytest.approx(13 / 60)

    def test_it_draws_identifiers_and_seeds_and_nothing_else(self) -> None:  # as release 0.30 does
        run, _ = begun(GridSpec(max_length=5), space=SIX, seed=3)
        plain = Sampler(Space(), RandomStream(3))
        expected = [plain.create() for _ in range(6)]
        assert [(one.trial_key, one.trial_seed) for one in run.creates] == [
            (one.trial_key, one.trial_seed) for one in expected
        ]


class TestDraws:
    def test_each_kind_takes_what_it_is_documented_to_take(self) -> None:  # as release 0.30 does
        space = Space(
            {
                "a": Const("fixed"),
                "b": IntRange(-3, 4),
                "c": DoubleRange(-1.0, 3.0),
                "d": LogRange(-5.0, 2.0, base=2.0),
                "e": Categorical(("u", "v", "w")),
                "f": Space({"z": DoubleRange(0.0, 1.0), "y": IntRange(0, 99)}),
            }
        )
        for seed in range(20):
            words = RandomStream(seed)
            expected = {
                "a": "fixed",
                "b": -3 + words.bounded(8),
                "c": -1.0 + 4.0 * words.unit(),
                "d": 2.0 ** (-5.0 + 7.0 * words.unit()),
                "e": ("u", "v", "w")[words.bounded(3)],
                # Groups in ascending order of names, too.
                "f": {"y": words.bounded(100), "z": words.unit()},
            }
            sampled = RandomStream(seed)
            assert space.sample(sampled) == expected
            assert sampled.position == words.position

    def test_hyperparameters_come_before_the_identifier_and_the_seed(self) -> None:  # as release 0.30 does
        sampler, words = Sampler(SIX, RandomStream(11)), RandomStream(11)
        created = sampler.create()
        assert created.hparams == {"a": words.bounded(3), "b": ("x", "y")[words.bounded(2)]}
        assert created.trial_key == str(UUID(bytes=words.octets(4), version=4))
        assert created.trial_seed == words.bounded(2**31)
