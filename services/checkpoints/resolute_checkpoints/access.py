"""Checks which checkpoints a trial's token may access. For users and services the permission table decides.

A trial writes only its own checkpoints, and changes only those of its experiment. It reads all checkpoints of
its workspace, because it may start from a checkpoint of another experiment.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.engine import Connection

from resolute.errors import InvalidArgumentError, NotFoundError, PermissionDeniedError
from resolute_checkpoints.domain.checkpoint import Checkpoint, State
from resolute_checkpoints.store import fencing, records
from resolute_serving.context import Principal, ServiceAccount, TrialRun


def require_author(principal: Principal, checkpoint: Checkpoint, *, run: int) -> None:
    """Checks that the caller is the run that began the checkpoint.

    Raises:
        PermissionDeniedError: It is another trial's, or a later run's.
        InvalidArgumentError: The request names another run than the one that began it.
    """
    owner = checkpoint.owner
    if isinstance(principal, TrialRun) and (owner.trial_id != principal.trial_id or run > principal.run):
        raise _refusal(principal, checkpoint)
    if run != owner.run:
        raise InvalidArgumentError(
            f"{checkpoint} was begun by run {owner.run}, the request names run {run}; "
            "the run that begins a checkpoint also commits or aborts it",
            resource=str(checkpoint),
        )


def require_uploading(
    connection: Connection, checkpoint_id: str, principal: Principal, *, lock: bool
) -> Checkpoint:
    """Reads a checkpoint, without its files, and checks that the caller may write it.

    Raises:
        IllegalTransitionError: It is not being uploaded.
        PermissionDeniedError: It is another trial's, or a later run's.
        RunSupersededError: The run is over.
    """
    checkpoint = records.find(connection, checkpoint_id, lock=lock, listed=False)
    owner = checkpoint.owner
    require_author(principal, checkpoint, run=owner.run)
    fencing.require_run(connection, owner.trial_id, owner.run, lock=lock)
    if checkpoint.state is not State.UPLOADING:
        raise checkpoint.cannot_become(State.UPLOADING)
    return checkpoint


def require_editor(connection: Connection, principal: Principal, checkpoint: Checkpoint) -> None:
    """Checks that the caller may change or delete the checkpoint.

    Raises:
        PermissionDeniedError: It belongs to another experiment than the trial that calls.
        RunSupersededError: A later run has taken over; it may need what this one would delete.
    """
    if isinstance(principal, TrialRun):
        if not _same_experiment(principal, checkpoint):
            raise _refusal(principal, checkpoint)
        fencing.require_run(connection, principal.trial_id, principal.run, lock=True)


def require_reader(principal: Principal, checkpoint: Checkpoint) -> None:
    """Checks that the caller may read the checkpoint.

    Raises:
        NotFoundError: It is not committed and not the caller's.
        PermissionDeniedError: It belongs to another workspace than the trial that calls, and is not the one
            that the trial's config starts from: the submitter of that config may read it.
    """
    if not checkpoint.state.was_committed and not can_see_uploads(principal, [checkpoint.owner.trial_id]):
        raise records.missing(checkpoint.checkpoint_id)
    if (
        isinstance(principal, TrialRun)
        and not _same_workspace(principal, checkpoint)
        and not _same_experiment(principal, checkpoint)
        and checkpoint.checkpoint_id != principal.source_checkpoint_id
    ):
        raise _refusal(principal, checkpoint)


def can_see_uploads(principal: Principal, trial_ids: Collection[str]) -> bool:
    """Returns whether the caller, a trial or a service, may see checkpoints that are not committed."""
    if isinstance(principal, TrialRun):
        return set(trial_ids) == {principal.trial_id}
    return isinstance(principal, ServiceAccount)


def require_files(checkpoint: Checkpoint) -> None:
    """Checks that the checkpoint is in a state in which it has files.

    Raises:
        NotFoundError: They are deleted, or were never committed.
    """
    if not checkpoint.state.has_files:
        raise NotFoundError(
            f"{checkpoint} is {checkpoint.state.value}, its files are not available; use another checkpoint",
            resource=str(checkpoint),
        )


def _same_workspace(principal: TrialRun, checkpoint: Checkpoint) -> bool:
    owner = checkpoint.owner
    if owner.workspace_id and principal.workspace_id:
        return owner.workspace_id == principal.workspace_id
    # Rows and tokens from before workspaces were named by id.
    return owner.workspace in {"", principal.workspace}


def _same_experiment(principal: TrialRun, checkpoint: Checkpoint) -> bool:
    return bool(principal.experiment_id) and checkpoint.owner.experiment_id == principal.experiment_id


def _refusal(principal: TrialRun, checkpoint: Checkpoint) -> PermissionDeniedError:
    return PermissionDeniedError(
        f"the token of trial {principal.trial_id} run {principal.run} does not reach {checkpoint}",
        resource=str(checkpoint),
    )
