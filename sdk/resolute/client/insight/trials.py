"""The reasons why a trial was created and why it is in its state."""

from __future__ import annotations

from dataclasses import dataclass

from resolute.client.insight.decisions import Decision, SearchEvent, decisions, search_event, trial_key
from resolute.client.schema.records import TrialRecord
from resolute.client.schema.transitions import TransitionRecord
from resolute.client.services import Services
from resolute.errors import NotFoundError


@dataclass(frozen=True, kw_only=True)
class TrialExplanation:
    """The recorded reasons for the state of a trial."""

    trial: TrialRecord
    reports: tuple[SearchEvent, ...]
    """Its validations that the search received, and how it ended for the search."""
    decisions: tuple[Decision, ...]
    """What the search decided about it, in order."""
    transitions: tuple[TransitionRecord, ...]
    """The changes of its state, in order."""

    @property
    def origin(self) -> Decision | None:
        """Why it exists; None for a trial without a search."""
        return next((decision for decision in self.decisions if decision.kind == "create"), None)

    @property
    def last_decision(self) -> Decision | None:
        """The last decision about it."""
        return self.decisions[-1] if self.decisions else None

    @property
    def last_request(self) -> TransitionRecord | None:
        """The last change of its state that a user asked for."""
        return next((transition for transition in reversed(self.transitions) if transition.actor), None)


def explain_trial(services: Services, key: str) -> TrialExplanation:
    """Collects why a trial is where it is.

    Raises:
        NotFoundError: There is no such trial.
    """
    trial = services.trials.get(key)
    try:
        entries = list(services.searches.log(trial.experiment_uuid, trial_keys=[trial.trial_key]))
    except NotFoundError:  # a run outside of the cluster has no search
        entries = []
    # Other trials' reports cause decisions about this one.
    strangers = any(trial_key(entry.event) not in ("", trial.trial_key) for entry in entries)
    others = services.trials.list(trial.experiment_uuid) if strangers else [trial]
    numbers = {other.trial_key: other.id for other in others}
    reports = [search_event(entry.event, numbers) for entry in entries]
    return TrialExplanation(
        trial=trial,
        reports=tuple(event for event in reports if event.trial == trial.id),
        decisions=tuple(decision for decision in decisions(entries, numbers) if decision.trial == trial.id),
        transitions=tuple(services.trials.transitions(trial.uuid)),
    )
