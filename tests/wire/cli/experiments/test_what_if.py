"""`resolute search whatif` and `replay --at`, on the log of a scripted search and the real simulation."""

from __future__ import annotations

import json
from pathlib import Path

from wire.cli.conftest import CommandLine
from wire.cli.scripted import ScriptedCluster

from resolute.api.searcher.v1 import event_pb2

KEYS = ("0b9c6c1e-2f4e-4f7b-9f53-3d4f6c9a1b2d", "7d3c8f60-13a5-4f6e-8d1b-5a5be2f0c111")


def recorded(cluster: ScriptedCluster) -> None:
    """Trial 1 came to length 4, trial 2 to length 1 only."""
    state = cluster.state
    experiment = state.add_experiment(searcher_name="adaptive_asha")
    for key in KEYS:
        state.add_trial(experiment, trial_key=key)
    for sequence, (key, metric, length) in enumerate(
        [(KEYS[0], 0.5, 1), (KEYS[1], 0.4, 1), (KEYS[0], 0.9, 4)], start=2
    ):
        report = event_pb2.Event.ValidationCompleted(trial_key=key, metric=metric, length=length)
        event = event_pb2.Event(sequence=sequence, validation_completed=report)
        state.entries.append(event_pb2.LogEntry(event=event))


def test_another_search_is_compared_and_what_was_not_recorded_is_marked(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    recorded(cluster)
    other = tmp_path / "other.yaml"
    other.write_text("searcher: {name: random, max_trials: 3, max_length: {epochs: 4}}\n")
    found = json.loads(resolute("search", "whatif", "1", "--searcher", str(other), "--json").out)
    assert found["recorded"] == {"trials": 2, "units": 5.0, "best": 0.9, "best_trial": 1}
    assert found["other"] == {"trials": 3, "units": 12, "best": 0.9, "best_trial": 1}
    trials = [(one["recorded"], one["extrapolated"], one["repeated"]) for one in found["trials"]]
    assert trials == [(1, False, False), (2, True, False), (1, False, True)]
    text = resolute("search", "whatif", "1", "--searcher", str(other)).out
    assert "adaptive_asha, as it ran" in text
    assert "1 of 3 trials train beyond the recorded curves" in text


def test_without_recorded_validations_there_is_nothing_to_run_on(
    cluster: ScriptedCluster, resolute: CommandLine, tmp_path: Path
) -> None:
    cluster.state.add_experiment()
    other = tmp_path / "other.yaml"
    other.write_text("name: random\n")
    outcome = resolute("search", "whatif", "1", "--searcher", str(other))
    assert outcome.code == 1
    assert "no trial of experiment 1 has reported a validation to its search" in outcome.err
