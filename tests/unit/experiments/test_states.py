"""The life of an experiment as a table: legal events lead where they should, all others are refused."""

from __future__ import annotations

import pytest

from resolute.errors import IllegalTransitionError
from resolute_experiments.states import (
    EXPERIMENT_TRANSITIONS,
    ExperimentEvent,
    ExperimentState,
    next_state,
)

S, E = ExperimentState, ExperimentEvent

LIVE = (S.ACTIVE, S.PAUSED)
STOPPING = {
    S.STOPPING_COMPLETED: S.COMPLETED,
    S.STOPPING_CANCELED: S.CANCELED,
    S.STOPPING_KILLED: S.CANCELED,
    S.STOPPING_ERROR: S.ERROR,
}
ENDED = (S.COMPLETED, S.CANCELED, S.ERROR)
LEGAL = [
    *((state, E.PAUSE, S.PAUSED) for state in LIVE),
    *((state, E.ACTIVATE, S.ACTIVE) for state in LIVE),
    *((state, E.CONTINUE, S.ACTIVE) for state in (*LIVE, *ENDED)),
    *((state, E.CANCEL, S.STOPPING_CANCELED) for state in (*LIVE, S.STOPPING_CANCELED)),
    *((state, E.KILL, S.STOPPING_KILLED) for state in (*LIVE, *STOPPING)),
    *((state, E.SEARCH_COMPLETED, S.STOPPING_COMPLETED) for state in LIVE),
    *((state, E.SEARCH_FAILED, S.STOPPING_ERROR) for state in LIVE),
    *((state, E.SEARCH_CANCELED, S.STOPPING_CANCELED) for state in LIVE),
    *((state, E.SEARCH_COMPLETED, state) for state in STOPPING),
    *((state, E.SEARCH_FAILED, state) for state in STOPPING),
    *((state, E.SEARCH_CANCELED, state) for state in STOPPING),
    *((state, E.LAST_TRIAL_ENDED, ended) for state, ended in STOPPING.items()),
    *((state, E.ARCHIVE, state) for state in ENDED),
    *((state, E.DELETE, S.DELETING) for state in (*ENDED, S.DELETE_FAILED)),
    (S.DELETING, E.FILES_DELETED, S.DELETED),
    (S.DELETING, E.DELETION_FAILED, S.DELETE_FAILED),
]


def test_every_row_of_the_table_is_tested_here() -> None:
    assert {(before, event) for before, event, _ in LEGAL} == set(EXPERIMENT_TRANSITIONS)
    assert len(LEGAL) == len(EXPERIMENT_TRANSITIONS)


@pytest.mark.parametrize(("before", "event", "after"), LEGAL)
def test_legal_event_leads_where_the_table_says(
    before: ExperimentState, event: ExperimentEvent, after: ExperimentState
) -> None:
    assert next_state(before, event, resource="experiment 1") is after


def test_every_other_event_is_refused_with_both_states() -> None:
    refused = [(s, e) for s in S for e in E if (s, e) not in EXPERIMENT_TRANSITIONS]
    assert len(refused) > 80
    for state, event in refused:
        with pytest.raises(IllegalTransitionError) as caught:
            next_state(state, event, resource="experiment 7")
        assert "experiment 7" in str(caught.value)
        assert (caught.value.from_state, caught.value.to_state) == (state.value, event.value)


@pytest.mark.parametrize("state", [S.COMPLETED, S.CANCELED, S.ERROR])
@pytest.mark.parametrize("event", [E.PAUSE, E.ACTIVATE, E.CANCEL, E.KILL])
def test_ended_experiment_cannot_be_led_any_more(state: ExperimentState, event: ExperimentEvent) -> None:
    with pytest.raises(IllegalTransitionError, match=state.value):
        next_state(state, event, resource="experiment 1")
