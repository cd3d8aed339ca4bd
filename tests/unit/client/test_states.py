"""States by their own names and by those of Determined."""

from __future__ import annotations

from enum import Enum

import pytest

from resolute.client.schema.states import CheckpointState, ExperimentState, LogLevel, TrialState, word

DETERMINED: dict[type[Enum], str] = {
    ExperimentState: "ACTIVE PAUSED STOPPING_COMPLETED STOPPING_CANCELED STOPPING_ERROR COMPLETED CANCELED "
    "ERROR DELETED DELETING DELETE_FAILED STOPPING_KILLED QUEUED PULLING STARTING RUNNING",
    TrialState: "ACTIVE PAUSED STOPPING_CANCELED STOPPING_KILLED STOPPING_COMPLETED STOPPING_ERROR CANCELED "
    "COMPLETED ERROR QUEUED PULLING STARTING RUNNING",
    CheckpointState: "ACTIVE COMPLETED ERROR DELETED PARTIALLY_DELETED",
}


@pytest.mark.parametrize("kind", DETERMINED)
def test_each_state_is_found_by_both_spellings(kind: type[Enum]) -> None:
    for name in DETERMINED[kind].split():
        assert kind(f"STATE_{name}") is kind(name) is kind[name]
        assert kind[name].value in {f"STATE_{known}" for known in DETERMINED[kind].split()}
    with pytest.raises(ValueError, match="NOPE"):
        kind("STATE_NOPE")


def test_our_own_output_has_our_names() -> None:
    assert ExperimentState.COMPLETED.value == "STATE_COMPLETED"
    assert word(ExperimentState.COMPLETED) == "COMPLETED"
    assert LogLevel("LOG_LEVEL_INFO") is LogLevel("INFO")
    assert word(LogLevel.INFO) == "INFO"
