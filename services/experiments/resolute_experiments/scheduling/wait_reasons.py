"""The reasons why trials wait, as the scheduler's last pass recorded them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from resolute_experiments.scheduling.waits import Waits
from resolute_experiments.states import ExperimentState, TrialState
from resolute_experiments.store import wait_reasons
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial
from resolute_experiments.transitions.signals import allocation_id

_NOT_YET = "waits for the scheduler"


class WaitReasons:
    """The database's reasons as a copy in memory, so that a list of thousands of trials needs no query.

    Args:
        engine_reason: Returns the reason why an engine has not started an allocation.
    """

    def __init__(self, engine_reason: Callable[[str], str] = lambda _: "") -> None:
        self._engine_reason = engine_reason
        self._waits: Waits | None = None

    def load(self, connection: Connection) -> None:
        """Loads the reasons that the service recorded before it was restarted, if there are any."""
        recorded = wait_reasons.read(connection)
        self._waits = Waits(recorded) if recorded else None

    def differ(self, waits: Waits) -> bool:
        """Whether a pass found something else than what is recorded."""
        return waits != (self._waits or Waits())

    def update(self, waits: Waits) -> None:
        """Replaces the reasons by those that a pass has recorded."""
        self._waits = waits

    def wait_reason(self, trial_id: str, experiment_id: str) -> str:
        """Says why a trial waits that has no slots."""
        return self._waits.reason(trial_id, experiment_id) if self._waits else _NOT_YET

    def last_reason(self, trial_id: str, experiment_id: str) -> str:
        """Returns why a trial waits, by the last pass; empty if the pass did not consider the trial."""
        return self._waits.known_reason(trial_id, experiment_id) if self._waits else ""

    def first_wait_reason(self, experiment_id: str) -> str:
        """Says why the first of an experiment's waiting trials waits."""
        return self._waits.first_reason(experiment_id) if self._waits else _NOT_YET

    def explain_experiment(self, experiment: Experiment, counts: Mapping[str, int]) -> str:
        """Says why the first of an experiment's waiting trials waits; empty when none does.

        Args:
            experiment: The experiment.
            counts: Its trials by state.
        """
        return self.first_wait_reason(experiment.id) if has_waiting_trials(experiment, counts) else ""

    def explain(self, trial: Trial) -> str:
        """Says why a trial waits or how its last run ended; empty when there is nothing to say."""
        # Of one that runs, a part may wait still.
        if trial.state in {TrialState.STARTING, TrialState.RUNNING}:
            return self._engine_reason(allocation_id(trial.id, trial.run)) or trial.explanation
        if trial.state is not TrialState.QUEUED:
            return trial.explanation
        reason = self.wait_reason(trial.id, trial.experiment_id)
        return f"{reason}; its last run {trial.explanation}" if trial.explanation else reason


def has_waiting_trials(experiment: Experiment, counts: Mapping[str, int]) -> bool:
    """Whether trials of an experiment wait for slots, by its state and its trials by state."""
    return experiment.state is ExperimentState.ACTIVE and counts.get(TrialState.QUEUED.value, 0) > 0
