"""Every row of the table that says what the end of a run means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import pytest

from resolute_experiments.exits.policy import (
    MOST_BARREN_ENDS,
    OUTCOME_RULES,
    TRIAL_RULES,
    EarlyExit,
    Exit,
    ExitFacts,
    Operation,
    TrialContext,
    decide_exit,
)
from resolute_experiments.states import (
    RUNS,
    STOPPING_EXPERIMENTS,
    TRIALS,
    ExperimentState,
    RunOutcome,
    TrialEffect,
    TrialState,
)

INCOMPLETE = Operation(uses_operations=True, completed=False, closed=False)
CLOSED_INCOMPLETE = Operation(uses_operations=True, completed=False, closed=True)
COMPLETED = Operation(uses_operations=True, completed=True, closed=False)
DONE = Operation(uses_operations=True, completed=True, closed=True)
BOTH = (False, True)
UNDRIVEN = Operation(uses_operations=False, completed=False, closed=False)
STOPPED_BY_SEARCH = Operation(uses_operations=False, completed=False, closed=True)


def situation(
    experiment: ExperimentState = ExperimentState.ACTIVE, *, restarts: int = 0, killed: bool = False
) -> TrialContext:
    return TrialContext(experiment=experiment, kill_requested=killed, restarts=restarts, max_restarts=2)


@dataclass(frozen=True)
class Decided:
    """What was decided, as the tables of runs and trials carry it out."""

    outcome: RunOutcome
    trial: TrialState
    told: TrialEffect | None
    counts_as_restart: bool


def decided(exit_: Exit, operation: Operation, platform: TrialContext) -> Decided:
    decision = decide_exit(ExitFacts(exit=exit_, operation=operation, situation=platform))
    step = TRIALS.step(TrialState.STOPPING, decision.trial, resource="trial 1")
    queues = TrialEffect.ENQUEUE in step.effects
    paused = queues and platform.experiment is ExperimentState.PAUSED
    told = [effect for effect in step.effects if effect.name.startswith("NOTIFY_")]
    assert len(told) <= 1
    return Decided(
        outcome=RUNS.step(RunOutcome.UNSPECIFIED, decision.run, resource="run 1").after,
        trial=TrialState.PAUSED if paused else step.after,
        told=told[0] if told else None,
        counts_as_restart=TrialEffect.COUNT_RESTART in step.effects,
    )


def test_exit_after_the_last_operation_completes_the_trial() -> None:  # as release 0.30 does
    decision = decided(Exit(acknowledged=True), DONE, situation())
    assert (decision.trial, decision.told) == (TrialState.COMPLETED, TrialEffect.NOTIFY_CLOSED)
    assert decision.outcome is RunOutcome.COMPLETED


def test_exit_without_acknowledgement_after_the_last_operation_completes_the_trial_too() -> None:
    assert decided(Exit(), DONE, situation()).told is TrialEffect.NOTIFY_CLOSED


def test_trial_out_of_operations_waits_for_its_search() -> None:
    decision = decided(Exit(acknowledged=True), COMPLETED, situation())
    assert (decision.trial, decision.told) == (TrialState.WAITING, None)


def test_acknowledged_exit_with_work_left_is_a_preemption_and_queues_again() -> None:  # as release 0.30 does
    decision = decided(Exit(acknowledged=True), INCOMPLETE, situation())
    assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.QUEUED)
    assert not decision.counts_as_restart


def test_preempted_trial_of_a_paused_experiment_is_paused() -> None:
    decision = decided(Exit(acknowledged=True), INCOMPLETE, situation(ExperimentState.PAUSED))
    assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.PAUSED)


@pytest.mark.parametrize("operation", [INCOMPLETE, CLOSED_INCOMPLETE])
def test_exit_zero_with_work_left_and_no_acknowledgement_is_the_users_own_stop(
    operation: Operation,
) -> None:  # as release 0.30 does
    decision = decided(Exit(), operation, situation())
    assert (decision.trial, decision.told) == (
        TrialState.COMPLETED,
        TrialEffect.NOTIFY_STOPPED,
    )


@pytest.mark.parametrize(("restarts", "state"), [(0, TrialState.QUEUED), (1, TrialState.QUEUED)])
def test_failure_restarts_while_restarts_are_left(
    restarts: int, state: TrialState
) -> None:  # as release 0.30 does
    decision = decided(Exit(exit_code=1), INCOMPLETE, situation(restarts=restarts))
    assert (decision.outcome, decision.trial, decision.counts_as_restart) == (RunOutcome.FAILED, state, True)
    assert decision.told is None


def test_failure_beyond_the_last_restart_is_an_error() -> None:  # as release 0.30 does
    decision = decided(Exit(exit_code=1), INCOMPLETE, situation(restarts=2))
    assert (decision.trial, decision.told) == (TrialState.ERROR, TrialEffect.NOTIFY_ERRORED)


@pytest.mark.parametrize(
    ("exit_", "state"),
    [
        (Exit(exit_code=1), TrialState.ERROR),
        (Exit(lost=True), TrialState.QUEUED),
        (Exit(acknowledged=True), TrialState.QUEUED),
    ],
)
def test_log_policy_that_cancels_retries_makes_the_first_failure_the_last(  # as release 0.30 does
    exit_: Exit, state: TrialState
) -> None:
    decision = decided(exit_, INCOMPLETE, replace(situation(), retries_cancelled=True))
    assert decision.trial is state
    assert not decision.counts_as_restart
    assert (decision.told is TrialEffect.NOTIFY_ERRORED) == (state is TrialState.ERROR)


def test_lost_run_queues_again_and_is_no_restart() -> None:  # as release 0.30 does
    decision = decided(Exit(lost=True), INCOMPLETE, situation(restarts=2))
    assert (decision.outcome, decision.trial, decision.counts_as_restart) == (
        RunOutcome.LOST,
        TrialState.QUEUED,
        False,
    )


def test_lost_run_of_a_cancelled_experiment_ends_cancelled() -> None:
    decision = decided(Exit(lost=True), INCOMPLETE, situation(ExperimentState.STOPPING_CANCELED))
    assert decision.trial is TrialState.CANCELED


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (EarlyExit.INVALID_HP, TrialEffect.NOTIFY_INVALID),
        (EarlyExit.INIT_INVALID_HP, TrialEffect.NOTIFY_INVALID_AT_INIT),
    ],
)
def test_invalid_hyperparameters_complete_the_trial_without_a_restart(  # as release 0.30 does
    reason: EarlyExit, told: TrialEffect
) -> None:
    decision = decided(Exit(exit_code=1, early_exit=reason), INCOMPLETE, situation())
    assert (decision.outcome, decision.trial) == (RunOutcome.INVALID_HP, TrialState.COMPLETED)
    assert decision.told is told
    assert not decision.counts_as_restart


@pytest.mark.parametrize("exit_", [Exit(exit_code=137), Exit(acknowledged=True), Exit(lost=True)])
def test_killed_trial_is_cancelled_however_its_processes_ended(exit_: Exit) -> None:
    decision = decided(exit_, INCOMPLETE, situation(killed=True))
    assert (decision.outcome, decision.trial) == (RunOutcome.KILLED, TrialState.CANCELED)
    assert decision.told is TrialEffect.NOTIFY_CANCELED


def test_preempted_trial_of_a_cancelled_experiment_is_cancelled() -> None:
    decision = decided(Exit(acknowledged=True), INCOMPLETE, situation(ExperimentState.STOPPING_CANCELED))
    assert (decision.trial, decision.told) == (TrialState.CANCELED, TrialEffect.NOTIFY_CANCELED)


def test_trial_that_a_shut_down_search_left_open_is_cancelled() -> None:
    stopping = situation(ExperimentState.STOPPING_COMPLETED)
    decision = decided(Exit(acknowledged=True), INCOMPLETE, stopping)
    assert (decision.trial, decision.told) == (TrialState.CANCELED, TrialEffect.NOTIFY_CANCELED)


def test_trial_that_finished_while_its_experiment_was_cancelled_counts_as_completed() -> None:
    decision = decided(Exit(acknowledged=True), DONE, situation(ExperimentState.STOPPING_CANCELED))
    assert decision.trial is TrialState.COMPLETED


def test_without_operations_an_exit_zero_completes_the_trial() -> None:
    assert decided(Exit(), UNDRIVEN, situation()).told is TrialEffect.NOTIFY_CLOSED


def test_without_operations_an_acknowledged_exit_is_a_preemption() -> None:
    decision = decided(Exit(acknowledged=True), UNDRIVEN, situation())
    assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.QUEUED)


def test_trial_that_its_search_stopped_by_a_signal_is_completed() -> None:
    decision = decided(Exit(acknowledged=True), STOPPED_BY_SEARCH, situation())
    assert (decision.trial, decision.told) == (TrialState.COMPLETED, TrialEffect.NOTIFY_CLOSED)


@pytest.mark.parametrize(
    ("exit_", "outcome"), [(Exit(exit_code=143), RunOutcome.FAILED), (Exit(lost=True), RunOutcome.LOST)]
)
def test_trial_that_its_search_stopped_does_not_begin_again_however_it_left(
    exit_: Exit, outcome: RunOutcome
) -> None:
    decision = decided(exit_, STOPPED_BY_SEARCH, situation())
    assert (decision.outcome, decision.trial) == (outcome, TrialState.COMPLETED)
    assert decision.told is TrialEffect.NOTIFY_CLOSED
    assert not decision.counts_as_restart


def test_trial_that_died_of_the_sigterm_of_its_machine_was_preempted_and_has_not_failed() -> None:
    decision = decided(Exit(exit_code=143, acknowledged=True), INCOMPLETE, situation())
    assert decision.outcome is RunOutcome.PREEMPTED
    assert not decision.counts_as_restart
    assert decided(Exit(exit_code=143), INCOMPLETE, situation()).outcome is RunOutcome.FAILED
    assert decided(Exit(exit_code=1, acknowledged=True), INCOMPLETE, situation()).outcome is RunOutcome.FAILED


def test_trial_that_dies_of_sigterm_after_its_last_operation_does_not_begin_again_without_end() -> None:
    """Running out of operations acknowledges too: such a run was asked by nobody to leave."""
    decision = decided(Exit(exit_code=143, acknowledged=True), DONE, situation())
    assert decision.outcome is RunOutcome.FAILED
    assert decision.counts_as_restart or decision.trial is not TrialState.QUEUED


def test_trial_that_had_to_be_forced_to_leave_was_preempted_and_has_not_failed() -> None:
    exit_ = Exit(exit_code=137, forced=True)
    decision = decided(exit_, INCOMPLETE, situation(ExperimentState.PAUSED, restarts=2))
    assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.PAUSED)
    assert not decision.counts_as_restart


EXITS = [
    Exit(lost=lost, exit_code=code, forced=forced, acknowledged=acknowledged, early_exit=early)
    for lost, code, forced, acknowledged, early in product(
        (False, True), (0, 1, 143), (False, True), (False, True), EarlyExit
    )
]
OPERATIONS = [
    Operation(uses_operations=driven, completed=completed, closed=closed)
    for driven, completed, closed in product((False, True), repeat=3)
]
LIVES = [
    ExperimentState.ACTIVE,
    ExperimentState.PAUSED,
    ExperimentState.STOPPING_COMPLETED,
    ExperimentState.STOPPING_CANCELED,
    ExperimentState.STOPPING_KILLED,
    ExperimentState.STOPPING_ERROR,
]
ENDED = {TrialState.COMPLETED, TrialState.CANCELED, TrialState.ERROR}


def test_every_rule_decides_some_end_and_none_stands_behind_one_that_takes_all() -> None:
    outcomes, rules = set(), set()
    for exit_, operation, state, killed, cancelled, restarts, preemptible, (again, back) in product(
        EXITS, OPERATIONS, LIVES, BOTH, BOTH, (0, 2), BOTH, tuple(product(BOTH, BOTH))
    ):
        platform = replace(
            situation(state, restarts=restarts, killed=killed),
            retries_cancelled=cancelled,
            on_preemptible=preemptible,
            comes_again=again,
            taken_back=back,
        )
        facts = ExitFacts(exit=exit_, operation=operation, situation=platform)
        outcome = next(one for one in OUTCOME_RULES if one.predicate is None or one.predicate(facts))
        outcomes.add(outcome.when)
        rules.add(next(rule.when for rule in TRIAL_RULES if rule.applies(facts, outcome.event)))
    assert outcomes == {rule.when for rule in OUTCOME_RULES}
    assert rules == {rule.when for rule in TRIAL_RULES}


@pytest.mark.parametrize("exit_", [Exit(), Exit(exit_code=1), Exit(exit_code=137), Exit(lost=True)])
def test_a_run_that_its_guard_ended_uses_up_no_restart(exit_: Exit) -> None:
    back = replace(situation(restarts=2), taken_back=True)
    for operation in (INCOMPLETE, CLOSED_INCOMPLETE, UNDRIVEN):
        decision = decided(exit_, operation, back)
        assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.QUEUED)
        assert not decision.counts_as_restart
    assert decided(exit_, INCOMPLETE, replace(back, experiment=ExperimentState.PAUSED)).trial is (
        TrialState.PAUSED
    )
    stopping = replace(back, experiment=ExperimentState.STOPPING_CANCELED)
    assert decided(exit_, INCOMPLETE, stopping).trial is TrialState.CANCELED


def test_what_the_search_counts_as_done_is_not_taken_back() -> None:
    back = replace(situation(restarts=2), taken_back=True)
    assert decided(Exit(), DONE, back).trial is TrialState.COMPLETED
    killed = decided(Exit(exit_code=137), COMPLETED, back)
    assert (killed.outcome, killed.trial) == (RunOutcome.PREEMPTED, TrialState.QUEUED)


def test_whatever_happened_the_end_of_a_run_is_decided_and_told_once() -> None:
    cases = 0
    for exit_, operation, state, killed, cancelled, restarts in product(
        EXITS, OPERATIONS, LIVES, (False, True), (False, True), (0, 2)
    ):
        facts = replace(situation(state, restarts=restarts, killed=killed), retries_cancelled=cancelled)
        decision = decided(exit_, operation, facts)
        cases += 1
        assert decision.outcome is not RunOutcome.UNSPECIFIED
        assert decision.trial in ENDED | {TrialState.QUEUED, TrialState.PAUSED, TrialState.WAITING}
        assert (decision.told is not None) == (decision.trial in ENDED)
        if exit_.lost:
            assert not decision.counts_as_restart, "the loss of a machine is no restart"
        if decision.counts_as_restart:
            assert decision.outcome is RunOutcome.FAILED
        if killed or state is ExperimentState.STOPPING_KILLED:
            assert decision.trial is TrialState.CANCELED
        if state in STOPPING_EXPERIMENTS:
            assert decision.trial in ENDED, "nothing begins again in an experiment that stops"
        if state is ExperimentState.PAUSED:
            assert decision.trial is not TrialState.QUEUED
        if decision.trial is TrialState.ERROR:
            assert cancelled or restarts >= facts.max_restarts
    assert cases == len(EXITS) * len(OPERATIONS) * len(LIVES) * 8


@pytest.mark.parametrize("exit_", [Exit(lost=True), Exit(exit_code=137), Exit(exit_code=143)])
def test_what_ends_without_a_word_on_preemptible_machines_was_preempted(exit_: Exit) -> None:
    platform = replace(situation(restarts=2), on_preemptible=True, barren_ends=MOST_BARREN_ENDS)
    decision = decided(exit_, INCOMPLETE, platform)
    assert (decision.outcome, decision.trial) == (RunOutcome.PREEMPTED, TrialState.QUEUED)
    assert not decision.counts_as_restart


@pytest.mark.parametrize(
    "exit_", [Exit(lost=True), Exit(exit_code=137), Exit(exit_code=143), Exit(exit_code=1)]
)
@pytest.mark.parametrize("restarts", [0, 2])
def test_elsewhere_and_beyond_the_bound_and_of_other_codes_all_is_judged_as_ever(
    exit_: Exit, restarts: int
) -> None:
    usual = decided(exit_, INCOMPLETE, situation(restarts=restarts))
    too_often = replace(situation(restarts=restarts), on_preemptible=True, barren_ends=MOST_BARREN_ENDS + 1)
    assert decided(exit_, INCOMPLETE, too_often) == usual
    if exit_.exit_code == 1:
        once = replace(situation(restarts=restarts), on_preemptible=True, barren_ends=0)
        assert decided(exit_, INCOMPLETE, once) == usual
    assert usual.outcome is (RunOutcome.LOST if exit_.lost else RunOutcome.FAILED)


def test_a_log_policy_that_forbids_restarts_holds_on_preemptible_machines_too() -> None:
    platform = replace(situation(), on_preemptible=True, retries_cancelled=True)
    assert decided(Exit(exit_code=137), INCOMPLETE, platform).trial is TrialState.ERROR
