"""Checks that a new experiment's project accepts it, and that the caller may create it there."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from resolute.contracts.documents.refusals import refused_config
from resolute.errors import InvalidConfigError, QuotaError, Violation
from resolute_experiments.accounts.store import projects, usage, workspaces
from resolute_experiments.accounts.store.workspaces import Workspace
from resolute_serving.auth.grants import current_grants
from resolute_serving.context import Role


def admit(connection: Connection, *, workspace: str, project: str, slots: int) -> None:
    """Lets an experiment in, inside of the transaction that writes it.

    Args:
        connection: A write transaction.
        workspace: Name of its workspace.
        project: Name of its project there.
        slots: Slots that each of its trials needs.

    Raises:
        InvalidConfigError: The workspace or the project does not exist or is archived, or the caller may not
            see it.
        QuotaError: The workspace would use more than it may.
    """
    record = workspaces.find(connection, workspace)
    if record is None or not current_grants.get().sees(record.number):
        raise _misplaced("workspace", workspace, "there is none; `resolute workspace create` makes one")
    if record.archived:
        raise _misplaced("workspace", workspace, "it is archived; `resolute workspace unarchive` opens it")
    target = projects.find(connection, workspace, project)
    if target is None:
        remedy = f"there is none in workspace {workspace!r}; `resolute project create` makes one"
        raise _misplaced("project", project, remedy)
    if target.archived:
        raise _misplaced("project", project, "it is archived; `resolute project unarchive` opens it")
    _check_quota(connection, record, slots=slots)


def require_editor(connection: Connection, experiment_id: str) -> None:
    """Makes sure that the caller may run experiments where this one is, whatever a config says.

    Raises:
        NotFoundError: The caller may not see it.
        PermissionDeniedError: The caller may not run experiments there.
    """
    workspace = workspaces.of_experiment(connection, experiment_id)
    name = f"an experiment in workspace {workspace.name!r}"
    current_grants.get().require(Role.EDITOR, workspace.number, name=name)


def _check_quota(connection: Connection, workspace: Workspace, *, slots: int) -> None:
    quota = workspace.quota
    if quota.slots and slots > quota.slots:
        raise QuotaError(
            f"a trial needs {slots} slots, and workspace {workspace.name!r} may use {quota.slots}; set "
            f"resources.slots_per_trial lower, or ask an admin to raise the quota"
        )
    if quota.live_experiments:
        live = usage.live_experiments(connection, workspace.name)
        if live >= quota.live_experiments:
            raise QuotaError(
                f"workspace {workspace.name!r} has {live} experiments that have not ended, and may have "
                f"{quota.live_experiments}; wait for one, cancel one, or ask an admin to raise the quota"
            )


def _misplaced(field: str, name: str, reason: str) -> InvalidConfigError:
    return refused_config(Violation(field, f"found {name!r}; {reason}"))
