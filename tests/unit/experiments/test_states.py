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

LEGAL = [
    (S.ACTIVE, E.PAUSE, S.PAUSED),
    (S.PAUSED, E.PAUSE, S.PAUSED),
    (S.PAUSED, E.ACTIVATE, S.ACTIVE),
    (S.ACTIVE, E.ACTIVATE, S.ACTIVE),
    (S.COMPLETED, E.CONTINUE, S.ACTIVE),
    (S.CANCELED, E.CONTINUE, S.ACTIVE),
    (S.ERROR, E.CONTINUE, S.ACTIVE),
    (S.PAUSED, E.CONTINUE, S.ACTIVE),
    (S.ACTIVE, E.CANCEL, S.STOPPING_CANCELED),
    (S.PAUSED, E.CANCEL, S.STOPPING_CANCELED),
    (S.ACTIVE, E.KILL, S.STOPPING_KILLED),
    (S.STOPPING_CANCELED, E.KILL, S.STOPPING_KILLED),
    (S.ACTIVE, E.SEARCH_COMPLETED, S.STOPPING_COMPLETED),
    (S.ACTIVE, E.SEARCH_FAILED, S.STOPPING_ERROR),
    (S.ACTIVE, E.SEARCH_CANCELED, S.STOPPING_CANCELED),
    (S.STOPPING_CANCELED, E.SEARCH_COMPLETED, S.STOPPING_CANCELED),
    (S.STOPPING_COMPLETED, E.LAST_TRIAL_ENDED, S.COMPLETED),
    (S.STOPPING_CANCELED, E.LAST_TRIAL_ENDED, S.CANCELED),
    (S.STOPPING_KILLED, E.LAST_TRIAL_ENDED, S.CANCELED),
    (S.STOPPING_ERROR, E.LAST_TRIAL_ENDED, S.ERROR),
    (S.COMPLETED, E.DELETE, S.DELETING),
    (S.DELETE_FAILED, E.DELETE, S.DELETING),
    (S.DELETING, E.FILES_DELETED, S.DELETED),
    (S.DELETING, E.DELETION_FAILED, S.DELETE_FAILED),
    (S.ERROR, E.ARCHIVE, S.ERROR),
]


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
