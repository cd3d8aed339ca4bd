"""A replay finds what came out otherwise than recorded."""

from __future__ import annotations

from dataclasses import replace

from unit.searcher.harness import drive_in_order

from resolute_searcher.log.operations import ValidateAfter
from resolute_searcher.spec.search import AdaptiveAshaSpec, SearchSpec
from resolute_searcher.state_machine.replay import replay
from resolute_searcher.state_machine.search import Search, fold

SPEC = SearchSpec(method=AdaptiveAshaSpec(max_length=64, max_trials=16))


def test_an_untouched_log_replays_equal() -> None:
    run = drive_in_order(Search(SPEC), float)
    outcome = replay(SPEC, run.entries)
    assert (outcome.equal, outcome.first_difference, outcome.detail) == (True, None, "")
    assert outcome.state == run.search.state.snapshot()


def test_a_decision_of_another_version_is_found_and_shown() -> None:
    run = drive_in_order(Search(SPEC), float)
    entries = list(run.entries)
    position = next(
        index
        for index, entry in enumerate(entries)
        if index
        and isinstance(entry.operations[:1], tuple)
        and entry.operations
        and isinstance(entry.operations[0], ValidateAfter)
    )
    decided = entries[position].operations[0]
    assert isinstance(decided, ValidateAfter)
    other = (replace(decided, length=decided.length + 1), *entries[position].operations[1:])
    entries[position] = replace(entries[position], operations=other)
    outcome = replay(SPEC, entries)
    assert not outcome.equal
    assert outcome.first_difference == entries[position].sequence
    assert f"length={decided.length}" in outcome.detail
    assert f"recorded (ValidateAfter(trial_key='{decided.trial_key}', length={decided.length + 1}" in (
        outcome.detail
    )


def test_recovery_applies_what_another_version_recorded() -> None:
    run = drive_in_order(Search(SPEC), float)
    cut = next(i for i, entry in enumerate(run.entries) if i and entry.operations)
    recorded = run.entries[: cut + 1]
    changed = replace(recorded[-1], operations=(), actions=(), last_action=recorded[-2].last_action)
    search = fold(SPEC, [*recorded[:-1], changed])
    # Nothing was decided then, so nothing has happened since, whatever this version would decide.
    assert search.state.requested == fold(SPEC, recorded[:-1]).state.requested
    assert search.state.sequence == cut + 1


def test_an_event_that_is_refused_now_is_a_difference() -> None:
    run = drive_in_order(Search(SPEC), float)
    skipping = [run.entries[0], *run.entries[20:]]
    outcome = replay(SPEC, skipping)
    assert not outcome.equal
    assert outcome.first_difference == run.entries[20].sequence
    repeated = replay(SPEC, [run.entries[0], run.entries[0]])
    assert repeated.detail == "Started() changes nothing now"
