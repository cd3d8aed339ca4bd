"""What step 3 adds on top of timm's checkpoints: copies in the platform's storage, and the way back."""

import contextlib
import shutil

from timm.models import resume_checkpoint
from timm.utils import CheckpointSaver


class DeterminedCheckpointSaver(CheckpointSaver):
    """Saves as timm does; each file that it writes becomes a checkpoint of the trial too."""

    def __init__(self, core_context, trial_id, epoch_length, **options):
        self.core_context = core_context
        self.trial_id = trial_id
        self.epoch_length = epoch_length
        super().__init__(**options)

    def _save(self, save_path, epoch, metric=None):
        super()._save(save_path, epoch, metric)
        metadata = {"latest_batch": self.epoch_length * (epoch + 1), "trial_id": self.trial_id}
        with self.core_context.checkpoint.store_path(metadata) as (path, _):
            shutil.copy2(save_path, path.joinpath("data"))


def resume(core_context, parts, *, latest_checkpoint, otherwise, trial_id):
    """Takes up the trial's latest checkpoint, or else a file; returns the epoch to go on with."""
    if latest_checkpoint is not None:
        restore_path_context = core_context.checkpoint.restore_path(latest_checkpoint)
    else:
        restore_path_context = contextlib.nullcontext()
    # The files of a checkpoint are there for the length of the block only.
    with restore_path_context as restore_path:
        checkpoint_path = otherwise if restore_path is None else str(restore_path.joinpath("data"))
        if not checkpoint_path:
            return 0
        resume_epoch = resume_checkpoint(parts.bare_model, checkpoint_path, optimizer=parts.optimizer)
    if latest_checkpoint is not None:
        metadata = core_context.checkpoint.get_metadata(latest_checkpoint)
        if metadata["trial_id"] != trial_id:
            return 0  # another trial's weights to begin with: a new training
    parts.scheduler.step(resume_epoch)
    return resume_epoch
