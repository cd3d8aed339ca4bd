"""Imports experiments with their trials: their configs, owners, states and dates."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import yaml

from resolute.api.checkpoints.v1 import storage_pb2
from resolute.api.experiments.v1 import experiment_pb2, imports_service_pb2, trial_pb2
from resolute.client.remote.imports import batches
from resolute.client.schema.states import ExperimentState
from resolute.client.services import Services
from resolute.contracts.times import seconds_at, to_timestamp
from resolute.contracts.values import to_value
from resolute.errors import InvalidArgumentError, NotFoundError
from resolute.imports.history import Goal, TrialHere, groups_of
from resolute.imports.identifiers import OldName
from resolute.imports.master import Master, Message
from resolute.imports.places import Places
from resolute.imports.report import Report

_TRIALS_AT_ONCE = 200
_ENDED: Mapping[str, str] = {
    "STATE_COMPLETED": "COMPLETED",
    "STATE_CANCELED": "CANCELED",
    "STATE_ERROR": "ERROR",
}
"""States in which experiments and trials stay, by those of the other cluster."""
_GONE = frozenset({ExperimentState.DELETING, ExperimentState.DELETED, ExperimentState.DELETE_FAILED})
_SETTLED = ("reproducibility",)
"""Sections that say what happened only once the cluster has filled them in."""


@dataclass(frozen=True, kw_only=True)
class ExperimentHere:
    """An imported experiment, with the data that its trials need."""

    number: int
    """Its number on the other cluster."""
    experiment_id: str
    goal: Goal
    storage: storage_pb2.Storage | None
    """Where its checkpoints lie, or are copied to; None where they cannot be read here."""
    old_storage: Mapping[str, Any] | None
    """Where they are copied from, as its config says it there; None where they are registered as they lie."""
    workspace: tuple[int, str]
    """Number and name of its workspace here."""


class Experiments:
    """Imports experiments and trials, in the order of their numbers on the other cluster.

    Args:
        master: The other cluster.
        services: This cluster.
        report: Counts the imported objects.
        cluster_id: UUID of the other cluster.
        places: The workspaces and projects of this cluster.
        copies_checkpoints: Whether the checkpoints of new experiments are copied.
    """

    def __init__(
        self,
        master: Master,
        services: Services,
        report: Report,
        *,
        cluster_id: str,
        places: Places,
        copies_checkpoints: bool = False,
    ) -> None:
        self._master = master
        self._services = services
        self._report = report
        self._cluster_id = cluster_id
        self._places = places
        self._copies_checkpoints = copies_checkpoints

    def bring(self, listed: Message) -> ExperimentHere | None:
        """Creates one experiment, without its trials; None if an earlier import has brought everything of it.

        Raises:
            ResoluteError: It is refused.
        """
        number = int(listed["id"])
        name = OldName(self._cluster_id, "experiment", number)
        if self._is_whole(name.id):
            self._report.add("experiments", known=1)
            return None
        old = self._master.get(f"/api/v1/experiments/{number}")["experiment"]
        config: Mapping[str, Any] = old.get("config") or {}
        workspace, project = self._place(old)
        answer = self._services.imports.experiment(
            imports_service_pb2.ImportExperimentRequest(
                external_id=str(name),
                experiment=experiment_pb2.Experiment(
                    name=str(old.get("name") or config.get("name") or f"experiment {number}"),
                    description=str(old.get("description") or ""),
                    labels=old.get("labels") or [],
                    notes=str(old.get("notes") or ""),
                    state=_experiment_state(old),
                    archived=bool(old.get("archived")),
                    owner_name=str(old.get("username") or ""),
                    workspace_name=workspace,
                    project_name=project,
                    progress=float(old.get("progress") or 0.0),
                    create_time=to_timestamp(seconds_at(old.get("startTime"))),
                    end_time=to_timestamp(seconds_at(old.get("endTime"))),
                ),
                config_yaml=submitted_config(old, workspace=workspace, project=project),
                copies_checkpoints=self._copies_checkpoints,
            ),
            self._model_definition(number),
        )
        if answer.config_fault:
            self._report.remark(
                "configs that cannot be submitted here as they are: kept as they were written"
            )
        if old.get("forkedFrom"):
            self._report.remark("of which experiment one was forked")
        self._report.add("experiments", new=1)
        here = answer.experiment
        return ExperimentHere(
            number=number,
            experiment_id=here.experiment_id,
            goal=Goal(metric=here.searcher_metric, smaller_is_better=here.smaller_is_better),
            storage=answer.storage if answer.HasField("storage") else None,
            old_storage=storage_section(old) if answer.copies_checkpoints else None,
            workspace=(self._places.workspaces.get(int(old.get("workspaceId") or 1), 0), workspace),
        )

    def bring_trials(self, here: ExperimentHere) -> list[TrialHere]:
        """Creates the trials of an experiment."""
        order = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_ASC"}
        path = f"/api/v1/experiments/{here.number}/trials"
        brought: list[TrialHere] = []
        found = self._master.pages(path, "trials", **order)
        for batch in batches(found, most=_TRIALS_AT_ONCE, size=_size):
            messages = [_trial(OldName(self._cluster_id, "trial", int(old["id"])), old) for old in batch]
            ids = self._services.imports.trials(here.experiment_id, messages).trial_ids
            self._report.add("trials", sent=len(batch))
            self._report.remark(
                "dates of the restarts of trials: each trial has one run, and their number",
                sum(bool(old.get("restarts")) for old in batch),
            )
            brought += [
                TrialHere(
                    number=int(old["id"]),
                    trial_id=trial_id,
                    experiment_id=here.experiment_id,
                    groups=self._groups(old),
                )
                for old, trial_id in zip(batch, ids, strict=True)
            ]
        return brought

    def _groups(self, trial: Message) -> tuple[str, ...]:
        """The groups of metrics of a trial: lists need not tell its summary."""
        if trial.get("summaryMetrics") is None:
            with suppress(NotFoundError):
                trial = self._master.get(f"/api/v1/trials/{trial['id']}")["trial"]
        return groups_of(trial)

    def _is_whole(self, experiment_id: str) -> bool:
        """Whether it is here, and complete; asked first, since the other cluster would send all its code."""
        try:
            found = self._services.experiments.get(experiment_id)
        except NotFoundError:
            return False
        if found.state in _GONE:
            self._report.remark("experiments that were deleted here since they came: they do not come again")
        return not found.importing or found.state in _GONE

    def _place(self, old: Message) -> tuple[str, str]:
        project = self._places.projects.get(int(old.get("projectId") or 1))
        return project or (str(old.get("workspaceName") or ""), str(old.get("projectName") or ""))

    def _model_definition(self, number: int) -> bytes:
        try:
            answer = self._master.get(f"/api/v1/experiments/{number}/model_def")
        except NotFoundError:
            return b""
        return base64.b64decode(answer.get("b64Tgz") or "")


def experiments_of(master: Master, report: Report, wanted: Sequence[int] = ()) -> Iterator[Message]:
    """Yields experiments, oldest first.

    Args:
        master: The other cluster.
        report: Called with wanted ones that are not there.
        wanted: Only these numbers; empty for all.
    """
    order = {"sortBy": "SORT_BY_ID", "orderBy": "ORDER_BY_ASC", "showTrialData": "false"}
    missing = set(wanted)
    for listed in master.pages("/api/v1/experiments", "experiments", **order):
        if not wanted or int(listed["id"]) in wanted:
            missing.discard(int(listed["id"]))
            yield listed
    for number in sorted(missing):
        report.fail(f"experiment {number}", "the other cluster has none of this number, or does not show it")


def has_ended(listed: Message) -> bool:
    """Whether an experiment or a trial stays as it is."""
    return str(listed.get("state")) in _ENDED


def submitted_config(old: Message, *, workspace: str, project: str) -> str:
    """The config as its author wrote it, with what the cluster settled and where it belongs now."""
    config: Mapping[str, Any] = old.get("config") or {}
    written = _mapping(old.get("originalConfig")) or dict(config)
    settled = {name: config[name] for name in _SETTLED if config.get(name)}
    storage = {"checkpoint_storage": section} if (section := storage_section(old)) else {}
    return yaml.safe_dump({**written, **settled, **storage, "workspace": workspace, "project": project})


def storage_section(old: Message) -> dict[str, Any]:
    """Where the checkpoints lie. What the master masks of it is as the author of the config wrote it."""
    written = _mapping(old.get("originalConfig")).get("checkpoint_storage")
    known: Mapping[str, Any] = (old.get("config") or {}).get("checkpoint_storage") or {}
    unmasked = {name: value for name, value in known.items() if not _is_masked(value)}
    of_author = written if isinstance(written, dict) else {}
    return {**{name: value for name, value in of_author.items() if name in known}, **unmasked}


def _is_masked(value: object) -> bool:
    """Newer masters print a row of these for a secret."""
    return isinstance(value, str) and bool(value) and not value.strip("*")


def _mapping(text: object) -> dict[str, Any]:
    try:
        content = yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        content = None
    return dict(content) if isinstance(content, dict) else {}


def _experiment_state(old: Message) -> experiment_pb2.ExperimentState.ValueType:
    name = _ENDED.get(str(old.get("state")))
    if name is None:
        raise InvalidArgumentError(f"it is {old.get('state')}; start the same import when it has ended")
    return experiment_pb2.ExperimentState.Value(f"EXPERIMENT_STATE_{name}")


def _trial(name: OldName, old: Message) -> imports_service_pb2.ImportedTrial:
    # A trial that has not ended in an experiment that has was cut off with it.
    state = _ENDED.get(str(old.get("state")), "CANCELED")
    warm_start = str(old.get("warmStartCheckpointUuid") or "")
    end = seconds_at(old.get("endTime"))
    return imports_service_pb2.ImportedTrial(
        external_id=str(name),
        state=trial_pb2.TrialState.Value(f"TRIAL_STATE_{state}"),
        hparams=to_value(dict(old.get("hparams") or {})),
        restarts=int(old.get("restarts") or 0),
        create_time=to_timestamp(seconds_at(old.get("startTime"))),
        end_time=to_timestamp(end) if end else None,
        metadata=to_value(dict(old.get("metadata") or {})),
        source_checkpoint_id=warm_start,
    )


def _size(trial: Message) -> int:
    return len(str(trial.get("hparams"))) + len(str(trial.get("metadata")))
