"""The progress of an experiment in one line."""

from __future__ import annotations

from collections import Counter

from resolute.cli.display.trial_table import best_of, best_steps, best_value
from resolute.client.remote.experiments import Change
from resolute.client.schema.records import ExperimentRecord, TrialRecord
from resolute.client.schema.states import TrialState

_WAITING = frozenset({TrialState.QUEUED, TrialState.PAUSED, TrialState.WAITING})


class Progress:
    """The progress of a running experiment, from the changes that it is given. It calls no service.

    Args:
        experiment: The experiment as it was submitted.
    """

    def __init__(self, experiment: ExperimentRecord) -> None:
        self.experiment = experiment
        self.trials: dict[str, TrialRecord] = {}

    def apply(self, change: Change) -> None:
        """Takes a change."""
        if change.experiment is not None:
            self.experiment = change.experiment
        for trial in change.trials:
            self.trials[trial.uuid] = trial

    @property
    def first_trial(self) -> TrialRecord | None:
        """The trial with the smallest number."""
        return min(self.trials.values(), key=lambda trial: trial.id, default=None)

    @property
    def is_search(self) -> bool:
        """Whether there can be several trials."""
        return self.experiment.searcher_name != "single" or len(self.trials) > 1

    def line(self) -> str:
        """Writes it all in one line."""
        parts = [f"experiment {self.experiment.id} {self.experiment.shown_state}"]
        if not self.experiment.state.is_terminal:
            parts.append(f"{self.experiment.progress:.0%}")
        if self.trials:
            parts.append(self._trials_text())
        best = best_of(self.trials.values(), smaller_is_better=self.experiment.smaller_is_better)
        if best is not None:
            value = f"{self.experiment.searcher_metric} {best_value(best):.6g}"
            parts.append(f"best {value} (trial {best.id}, step {best_steps(best)})")
        return " · ".join(parts)

    def _trials_text(self) -> str:
        kinds = Counter(_kind(trial.state) for trial in self.trials.values())
        counts = [f"{kinds[kind]} {kind}" for kind in ("running", "waiting", "done", "failed") if kinds[kind]]
        return f"trials: {', '.join(counts)}"


def _kind(state: TrialState) -> str:
    if state.holds_slots:
        return "running"
    if state is TrialState.ERROR:
        return "failed"
    return "waiting" if state in _WAITING else "done"
