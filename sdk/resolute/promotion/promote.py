"""Promotes a trial: continues it on another cluster from its checkpoint."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from resolute.client.schema.states import CheckpointState
from resolute.client.services import Services
from resolute.client.submission.config import with_overrides
from resolute.core.unmanaged.sync import sync
from resolute.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    IllegalTransitionError,
    NotFoundError,
    ResoluteError,
)
from resolute.promotion.attempt import Attempt, forget, locked, remove_files
from resolute.promotion.checkpoint_copy import PROMOTED_TO, CheckpointCopy
from resolute.promotion.continuation import check_config, continue_from
from resolute.promotion.history import record_history
from resolute.promotion.preparation import Promotion, prepare

_SEND_SECONDS = 3600.0


@dataclass(frozen=True, kw_only=True)
class Promoted:
    """The objects on the other cluster that a promotion has created."""

    trial: int
    """Number there of the trial with its history."""
    checkpoint: str
    """UUID there of its checkpoint."""
    experiment: int | None
    """Number there of the experiment that goes on; None if its command is not known."""
    warnings: tuple[str, ...] = ()


def promote(
    source: Services,
    target: Services,
    key: str,
    *,
    directory: Path,
    overrides: Sequence[str] = (),
    paused: bool = False,
) -> Promoted:
    """Copies a trial's history and its latest checkpoint to another cluster, and continues from it there.

    Nothing of the source changes, except that its checkpoint's metadata tell where the copy is. A call that
    was cut short is continued by the next one, with the checkpoint that it began with. What has arrived is
    not copied again, unless it was removed there or the trial has a later checkpoint.

    Args:
        source: The cluster of the trial.
        target: The other one.
        key: Number or UUID of the trial.
        directory: Takes what is on its way, and keeps what was promoted where.
        overrides: Changes of the config of the experiment there, ``field.below=value`` each.
        paused: Whether to create that experiment paused.

    Raises:
        NotFoundError: There is no such trial, or it has no checkpoint.
        FailedPreconditionError: Both are one cluster, the trial is running, or the store of the target cannot
            be reached from here.
        InvalidConfigError: A change of the config cannot be made, or the target refuses the config.
        ConflictError: Another command promotes the trial to that cluster.
        DataLossError: The copy of the checkpoint is not what the original is.
        DeadlineError: Not everything was sent in time; the next call goes on.
    """
    promotion = prepare(source, target, key, directory=directory)
    with_overrides(dict(promotion.experiment.config or {}), overrides)  # refused before anything is copied
    with locked(promotion.place):
        attempt, warnings = _attempt(promotion)
        if not attempt.trial:
            check_config(promotion, attempt, overrides)
            attempt = _send(promotion, attempt.save(promotion.place))
        warnings += attempt.refusals
        created = continue_from(promotion, attempt, overrides, paused=paused)
        warnings += created.warnings if created else ()
        warnings += _note_copy(promotion, attempt)
        remove_files(promotion.place)
    return Promoted(
        trial=attempt.trial,
        checkpoint=attempt.copy_id,
        experiment=created.experiment.id if created else None,
        warnings=tuple(warnings),
    )


def _attempt(promotion: Promotion) -> tuple[Attempt, list[str]]:
    """Finds the attempt to go on with, or makes one that is not saved yet; with warnings."""
    written = [
        checkpoint
        for checkpoint in promotion.source.checkpoints.of_trial(promotion.trial.uuid)
        if checkpoint.state is CheckpointState.COMPLETED
    ]
    newest = max(written, key=lambda one: one.steps_completed, default=None)
    attempt = Attempt.load(promotion.place)
    attempt = attempt and _with_renamed_files(promotion, attempt)
    later = attempt is not None and newest is not None and newest.steps_completed > attempt.steps
    if attempt is not None and attempt.trial:
        if not later and _is_whole(promotion.target, attempt.copy_id):
            return attempt, []
    elif attempt is not None and (
        _is_whole(promotion.source, attempt.checkpoint) or _copy(promotion, attempt).is_whole
    ):
        steps = f"step {attempt.steps} of trial {promotion.trial.id}"
        warning = f"an interrupted promotion of {steps} went on; it has a later checkpoint: promote it again"
        return attempt, [warning] if later else []
    if newest is None:
        raise NotFoundError(f"trial {promotion.trial.id} has no checkpoint to go on from")
    forget(promotion.place)
    return Attempt(checkpoint=newest.uuid, steps=newest.steps_completed), []


def _is_whole(services: Services, checkpoint_id: str) -> bool:
    try:
        return services.checkpoints.get(checkpoint_id).state is CheckpointState.COMPLETED
    except NotFoundError:
        return False


def _copy(promotion: Promotion, attempt: Attempt) -> CheckpointCopy:
    return CheckpointCopy(promotion.place / "run", attempt.copy_id)


def _with_renamed_files(promotion: Promotion, attempt: Attempt) -> Attempt:
    """Gives the files of the copy its new UUID, if that was begun."""
    if not attempt.renamed_from:
        return attempt
    CheckpointCopy(promotion.place / "run", attempt.renamed_from).rename(attempt.copy_id)
    return replace(attempt, renamed_from="").save(promotion.place)


def _send(promotion: Promotion, attempt: Attempt) -> Attempt:
    """Brings everything here first, since a run that was begun must be reported, and sends it."""
    lineage = promotion.lineage(attempt)
    run = record_history(
        promotion.source,
        promotion.trial,
        promotion.place,
        run_id=attempt.run_id,
        metadata={"promoted_from": lineage},
    )
    copy = _copy(promotion, attempt)
    if not copy.is_whole:
        original = promotion.source.checkpoints.get(attempt.checkpoint)
        copy.bring(original, promotion.source, lineage=lineage)
    try:
        sent = sync(promotion.target, run, timeout=_SEND_SECONDS)
    except (IllegalTransitionError, AlreadyExistsError):
        # Its upload was given up there, or was begun for another place.
        renamed = replace(attempt, copy_id=str(uuid.uuid4()), renamed_from=attempt.copy_id)
        attempt = _with_renamed_files(promotion, renamed.save(promotion.place))
        copy = _copy(promotion, attempt)
        sent = sync(promotion.target, run, timeout=_SEND_SECONDS)
    try:
        copy.compare(promotion.target)
    except (DataLossError, FailedPreconditionError, NotFoundError):
        forget(promotion.place)
        raise
    return replace(attempt, trial=sent.trial.id, refusals=list(sent.refusals)).save(promotion.place)


def _note_copy(promotion: Promotion, attempt: Attempt) -> list[str]:
    """Notes at the original where its copy is; returns what kept it from that."""
    checkpoints = promotion.source.checkpoints
    here = {"cluster_id": promotion.target_id, "trial": attempt.trial}
    try:
        copies = checkpoints.get(attempt.checkpoint).metadata.get(PROMOTED_TO) or {}
        checkpoints.update_metadata(attempt.checkpoint, {PROMOTED_TO: {**copies, attempt.copy_id: here}})
    except ResoluteError as failure:
        return [f"the metadata of checkpoint {attempt.checkpoint} cannot name its copy: {failure}"]
    return []
