"""Values to and from messages by the names of their fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any

import pytest

from resolute.api.checkpoints.v1 import checkpoint_pb2, model_pb2
from resolute.api.experiments.v1 import (
    audit_row_pb2,
    cluster_service_pb2,
    experiment_pb2,
    job_pb2,
    project_pb2,
    role_pb2,
    run_environment_pb2,
    run_pb2,
    template_pb2,
    token_pb2,
    trial_pb2,
    trial_transition_pb2,
    user_pb2,
    workspace_pb2,
)
from resolute.api.logs.v1 import line_pb2
from resolute.api.metrics.v1 import summary_pb2
from resolute.api.searcher.v1 import reason_pb2
from resolute.client.remote import models
from resolute.client.remote.accounts import access, roles, workspaces
from resolute.client.schema import convert, environments, reasons, transitions
from resolute.client.schema.accounts import AuditRecord
from resolute.client.schema.records import TemplateRecord
from resolute.contracts.messages import enum_number, from_message, to_message


class State(Enum):
    """States, of which one has a name of its own."""

    UNSPECIFIED = "?"
    RUNNING = "runs"
    QUEUED = "queued"


@dataclass(frozen=True)
class Validation:
    """Named as the contract names it."""

    value: float | None
    steps: int


@dataclass(frozen=True)
class Trial:
    """Some fields of a trial, and one that the contract calls otherwise."""

    id: int
    state: State
    hparams: dict[str, Any]
    create_time: datetime | None
    end_time: datetime | None
    latest_checkpoint_id: str | None
    excluded_nodes: tuple[int, ...]
    best_validation: Validation | None
    last_validation: Validation | None


@dataclass(frozen=True)
class Row:
    """A run as a database might keep it."""

    run: int
    allocation_id: str
    outcome: State
    exit_code: int | None
    slot_ids: tuple[int, ...]
    end_time: float | None = None
    start_time: float = 1.5
    failure: str = ""
    hang: str = ""
    guard: str = ""
    idle: str = ""
    hold_time: float | None = None


def test_a_message_is_read_by_the_annotations_of_the_value() -> None:
    message = trial_pb2.Trial(number=7, state=trial_pb2.TRIAL_STATE_RUNNING, excluded_nodes=[1, 2])
    message.create_time.FromSeconds(60)
    message.hparams.map_value.fields["lr"].double_value = 0.5
    message.best_validation.steps = 3
    assert from_message(Trial, message, id=message.number) == Trial(
        id=7,
        state=State.RUNNING,
        hparams={"lr": 0.5},
        create_time=datetime(1970, 1, 1, 0, 1, tzinfo=timezone.utc),
        end_time=None,
        latest_checkpoint_id=None,
        excluded_nodes=(1, 2),
        best_validation=Validation(None, 3),
        last_validation=None,
    )


def test_a_number_that_is_not_known_is_unspecified() -> None:
    message = trial_pb2.Trial(state=trial_pb2.TRIAL_STATE_ERROR)
    assert from_message(Trial, message, id=1).state is State.UNSPECIFIED


def test_a_field_that_is_nowhere_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Trial\.id is not given, and Trial has no such field"):
        from_message(Trial, trial_pb2.Trial())


def test_a_message_is_written_from_attributes_and_what_is_given() -> None:
    row = Row(run=2, allocation_id="a", outcome=State.UNSPECIFIED, exit_code=None, slot_ids=(0, 1))
    given: dict[str, Any] = dict.fromkeys(
        ("initialize_time", "gpu_usage", "trace_id", "lost_steps", "log_policies", "left_out")
    )
    message = to_message(run_pb2.Run, row, **given)
    expected = run_pb2.Run(run=2, allocation_id="a", slot_ids=[0, 1])
    expected.start_time.FromMilliseconds(1500)
    assert message == expected
    with pytest.raises(AttributeError, match="log_policies"):
        to_message(run_pb2.Run, row)


def test_enumerations_are_written_by_name() -> None:
    descriptor = trial_pb2.TrialState.DESCRIPTOR
    assert enum_number(descriptor, "RUNNING") == trial_pb2.TRIAL_STATE_RUNNING
    assert enum_number(descriptor, "") == trial_pb2.TRIAL_STATE_UNSPECIFIED
    with pytest.raises(KeyError):
        enum_number(descriptor, "runs")


def test_every_record_of_the_client_is_complete() -> None:
    # None raises: of every field, either the message has one of that name or the conversion gives it.
    convert.experiment(experiment_pb2.Experiment(source=experiment_pb2.CodeSource()))
    convert.trial(trial_pb2.Trial(runs=[run_pb2.Run(gpu_usage=run_pb2.GpuUsage())]))
    convert.job(job_pb2.Job())
    convert.checkpoint(checkpoint_pb2.Checkpoint(files=[checkpoint_pb2.File()]))
    convert.line(line_pb2.Line())
    convert.summary(summary_pb2.Summary())
    pool = cluster_service_pb2.ResourcePool()
    convert.cluster(
        cluster_service_pb2.GetClusterResponse(slots=[cluster_service_pb2.Slot()], resource_pools=[pool])
    )
    transitions.transition(trial_transition_pb2.TrialTransition())
    environments.environment(run_environment_pb2.RunEnvironment())
    reasons.reason(reason_pb2.Reason())
    access._user(user_pb2.User())
    access._token(token_pb2.Token())
    roles._role(role_pb2.WorkspaceRole())
    workspaces._workspace(workspace_pb2.Workspace())
    workspaces._project(project_pb2.Project())
    models._version(model_pb2.ModelVersion())
    from_message(AuditRecord, audit_row_pb2.AuditRow())
    from_message(TemplateRecord, template_pb2.Template())
