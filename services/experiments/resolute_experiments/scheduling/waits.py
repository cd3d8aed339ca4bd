"""The wait reasons of one pass of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from resolute_experiments.store.wait_reasons import Wait

BEHIND = (
    "waits in the queue behind a trial that is more urgent, earlier, or of an experiment with fewer slots"
)
"""Why a trial waits that is not next. It names no numbers, so that a moving queue does not rewrite it."""


@dataclass(frozen=True)
class Waits:
    """Why trials wait. Reasons are kept only for experiments that were next or at a limit."""

    by_experiment: Mapping[str, Wait] = field(default_factory=dict)
    """The reasons, by the UUID of the experiment."""

    def reason(self, trial_id: str, experiment_id: str) -> str:
        """Says why a trial waits that the pass did not place."""
        return self.known_reason(trial_id, experiment_id) or BEHIND

    def known_reason(self, trial_id: str, experiment_id: str) -> str:
        """The same for a trial that was next, or at a limit; empty for any other."""
        wait = self.by_experiment.get(experiment_id)
        return wait.reason if wait is not None and wait.trial_id in ("", trial_id) else ""

    def first_reason(self, experiment_id: str) -> str:
        """Says why the first waiting trial of an experiment waits that the pass did not place."""
        wait = self.by_experiment.get(experiment_id)
        return wait.reason if wait is not None else BEHIND
