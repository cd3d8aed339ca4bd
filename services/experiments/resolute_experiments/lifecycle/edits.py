"""Edits the name, description, labels and notes of an experiment, and those of a trial."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import experiment_pb2, trial_pb2
from resolute.errors import FailedPreconditionError
from resolute_experiments.states import GONE_EXPERIMENTS
from resolute_experiments.store import audit, experiments, trials
from resolute_experiments.store.experiments import Experiment
from resolute_experiments.store.trials import Trial
from resolute_serving.validation import invalid

FIELDS = ("name", "description", "labels", "notes")
"""Fields of an experiment that may be changed."""
TRIAL_FIELDS = ("labels", "notes")
"""Fields of a trial that may be changed."""
MAX_NAME = 10_000
MAX_DESCRIPTION = 100_000
MAX_LABELS = 100
MAX_LABEL = 1_000
MAX_NOTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Edits:
    """New values for the fields of an experiment. None leaves a field unchanged."""

    name: str | None = None
    description: str | None = None
    labels: tuple[str, ...] | None = None
    notes: str | None = None

    @classmethod
    def read(cls, message: experiment_pb2.Experiment, paths: Collection[str]) -> Edits:
        """Reads the fields with some paths from a message.

        Raises:
            InvalidArgumentError: A value is too long, or missing where there must be one.
        """
        edits = cls(
            name=message.name if "name" in paths else None,
            description=message.description if "description" in paths else None,
            labels=tuple(dict.fromkeys(message.labels)) if "labels" in paths else None,
            notes=message.notes if "notes" in paths else None,
        )
        edits._check()
        return edits

    def _check(self) -> None:
        if self.name is not None and not 0 < len(self.name.strip()) <= len(self.name) <= MAX_NAME:
            raise invalid(
                "experiment.name", f"the name must have 1 to {MAX_NAME} characters, not only spaces"
            )
        if self.description is not None and len(self.description) > MAX_DESCRIPTION:
            raise invalid("experiment.description", f"the description may have {MAX_DESCRIPTION} characters")
        _check_notes(self.notes, self.labels, message="experiment")


@dataclass(frozen=True, kw_only=True)
class TrialEdits:
    """New values for the fields of a trial. None leaves a field unchanged."""

    labels: tuple[str, ...] | None = None
    notes: str | None = None

    @classmethod
    def read(cls, message: trial_pb2.Trial, paths: Collection[str]) -> TrialEdits:
        """Reads the fields with some paths from a message.

        Raises:
            InvalidArgumentError: A value is too long.
        """
        edits = cls(
            labels=tuple(dict.fromkeys(message.labels)) if "labels" in paths else None,
            notes=message.notes if "notes" in paths else None,
        )
        _check_notes(edits.notes, edits.labels, message="trial")
        return edits


def _check_notes(notes: str | None, labels: tuple[str, ...] | None, *, message: str) -> None:
    if notes is not None and len(notes) > MAX_NOTES:
        raise invalid(f"{message}.notes", f"the notes may have {MAX_NOTES} characters")
    if labels is not None and len(labels) > MAX_LABELS:
        raise invalid(f"{message}.labels", f"there may be {MAX_LABELS} labels, not {len(labels)}")
    if any(not 0 < len(label) <= MAX_LABEL for label in labels or ()):
        raise invalid(f"{message}.labels", f"a label must have 1 to {MAX_LABEL} characters")


def apply_to_trial(connection: Connection, trial: Trial, edits: TrialEdits, *, now: float) -> None:
    """Changes what people write of a trial."""
    values: dict[str, Any] = {
        name: value for name in TRIAL_FIELDS if (value := getattr(edits, name)) is not None
    }
    if edits.labels is not None:
        values["labels"] = list(edits.labels)
    trials.update(connection, trial, edit_revision=trial.edit_revision + 1, **values)
    recorded = {name: value for name, value in values.items() if name != "notes"}
    audit.record(connection, "update", trial.label, now=now, fields=sorted(values), **recorded)


def apply(connection: Connection, experiment: Experiment, edits: Edits, *, now: float) -> None:
    """Changes the experiment, and its config where that says the same.

    Raises:
        FailedPreconditionError: The experiment was deleted.
    """
    if experiment.state in GONE_EXPERIMENTS:
        raise FailedPreconditionError(
            f"{experiment.label} was deleted; it cannot be changed any more", resource=experiment.label
        )
    values: dict[str, Any] = {name: value for name in FIELDS if (value := getattr(edits, name)) is not None}
    if edits.labels is not None:
        values["labels"] = list(edits.labels)
    recorded = {name: value for name, value in values.items() if name != "notes"}
    experiments.edit(connection, experiment.id, config={**experiment.config, **recorded}, **values)
    audit.record(connection, "update", experiment.label, now=now, fields=sorted(values), **recorded)
