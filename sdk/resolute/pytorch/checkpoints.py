"""Checkpoints of a trial: what is in them, and how they are taken up again."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import resolute
from resolute.pytorch import layout, random_state
from resolute.pytorch.callbacks import Callbacks
from resolute.pytorch.context import PyTorchTrialContext
from resolute.pytorch.layout import TrialState
from resolute.pytorch.metrics import TrainingMetrics
from resolute.pytorch.progress import Progress
from resolute.pytorch.source_code import copy_code
from resolute.trial_errors import InvalidCheckpointException

_log = logging.getLogger("resolute.pytorch")


class Checkpoints:
    """Writes and loads the checkpoints of one trial.

    Args:
        trial_class: The trial's class.
        context: Its context.
        callbacks: Its callbacks.
        metrics: Metrics that were not reported yet; they belong to a checkpoint between two reports.
        from_trainer: Whether a script made the trial, with arguments that are not known.
    """

    def __init__(
        self,
        trial_class: type,
        context: PyTorchTrialContext,
        *,
        callbacks: Callbacks,
        metrics: TrainingMetrics,
        from_trainer: bool,
    ) -> None:
        self._trial_class = trial_class
        self._context = context
        self._callbacks = callbacks
        self._metrics = metrics
        self._from_trainer = from_trainer

    def save(self, progress: Progress, *, chief_only: bool = False) -> str | None:
        """Makes a checkpoint; every rank calls.

        Args:
            progress: How far training is.
            chief_only: Whether only this rank may know that a checkpoint is wanted, so that others cannot
            take
                part. Their random numbers are not in it then.

        Returns:
            Its identifier; None on ranks that took no part.
        """
        context = self._context
        dist = context.distributed
        if chief_only and dist.rank:
            return None
        state = self._state() if dist.rank == 0 else {}
        if dist.rank == 0:
            for callback in self._callbacks:
                callback.on_checkpoint_save_start(state)
        context._core.train.set_status("checkpointing")
        together = dist.size > 1 and not chief_only
        store = context._core.checkpoint.store_path(_metadata(progress), shard=together)
        with store as (directory, uuid):
            if dist.rank == 0:
                self._write(directory, state, progress)
                self._callbacks.end_write(str(directory))
            torch.save(self._rank_state(progress.step), directory / layout.rank_file(dist.rank))
        progress.saved = progress.step
        for callback in self._callbacks:
            callback.on_checkpoint_upload_end(uuid)
        return uuid

    def load(self, directory: Path, progress: Progress) -> None:
        """Takes up a checkpoint. Of another trial it takes the weights and other state, but no counters.

        Raises:
            InvalidCheckpointException: It is another model's.
        """
        context = self._context
        state = layout.read_state(directory)
        for callback in self._callbacks:
            callback.on_checkpoint_load_start(state)
        apply_state(context, state, recorded_class=_recorded_class(directory))
        self._callbacks.restore(state.get("callbacks", {}))
        trial_state = layout.TrialState.read(directory)
        goes_on = trial_state is not None and trial_state.trial_id == context.get_trial_id()
        if trial_state is not None and goes_on:
            progress.step = trial_state.batches_trained
            progress.validated = trial_state.last_val
            progress.saved = trial_state.batches_trained
        self._restore_rank(directory, state, goes_on=goes_on)

    def _state(self) -> dict[str, Any]:
        context = self._context
        state: dict[str, Any] = {
            "models_state_dict": [layout.unwrapped(model).state_dict() for model in context.models],
            "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
            "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
            "callbacks": self._callbacks.state(),
            "rng_state": random_state.capture(context.device),
        }
        precision = context._precision
        if precision.scaler is not None:
            state["scaler_state_dict"] = precision.scaler.state_dict()
        if precision.apex is not None:
            state["amp_state"] = precision.apex.state_dict()
        return state

    def _rank_state(self, step: int) -> dict[str, Any]:
        """What each rank has of its own. Between two steps of an optimizer that includes its gradients."""
        context = self._context
        gradients = None
        if step % context._aggregation_frequency:
            gradients = [[parameter.grad for parameter in model.parameters()] for model in context.models]
        return {
            "rng_state": random_state.capture(context.device),
            "gradients": gradients,
            "training_metrics": self._metrics.batches,
            "reducer_values": context.values_of_functions(),
            "ranks": context.distributed.size,
        }

    def _restore_rank(self, directory: Path, state: Mapping[str, Any], *, goes_on: bool) -> None:
        context = self._context
        path = directory / layout.rank_file(context.distributed.rank)
        own: dict[str, Any] = (
            torch.load(path, weights_only=False, map_location="cpu") if path.exists() else {}
        )
        if own.get("ranks") != context.distributed.size:
            own = {}  # the trial had more or fewer ranks: nobody's own state is anybody's now
        random_numbers = own.get("rng_state") or state.get("rng_state")
        if random_numbers is None:
            _log.warning("the checkpoint has no random numbers: those of this run are new")
        else:
            random_state.restore(random_numbers, context.device)
        if not goes_on:
            return
        for model, gradients in zip(context.models, own.get("gradients") or (), strict=False):
            for parameter, gradient in zip(model.parameters(), gradients, strict=False):
                parameter.grad = None if gradient is None else gradient.to(parameter.device)
        self._metrics.batches = list(own.get("training_metrics") or [])
        context.restore_values(own.get("reducer_values") or [])

    def _write(self, directory: Path, state: Mapping[str, Any], progress: Progress) -> None:
        context = self._context
        torch.save(state, directory / layout.STATE_FILE)
        TrialState(
            trial_id=context.get_trial_id(),
            batches_trained=progress.step,
            epochs_trained=progress.epochs,
            last_val=progress.validated,
            last_ckpt=progress.step,
            seed=context.get_trial_seed(),
        ).write(directory / layout.TRIAL_STATE_FILE)
        load_data = {
            "trial_type": "PyTorchTrial",
            "experiment_config": context._exp_conf,
            "hparams": context._hparams,
            "trial_cls_spec": trial_class_name(self._trial_class),
            "is_trainer": self._from_trainer,
            "trial_in_main": self._trial_class.__module__ == "__main__",
        }
        (directory / layout.LOAD_DATA_FILE).write_text(json.dumps(load_data, default=str))
        copy_code(
            self._trial_class, directory / layout.CODE_DIRECTORY, on_cluster=context._core.info is not None
        )


def apply_state(context: PyTorchTrialContext, state: Mapping[str, Any], *, recorded_class: str = "") -> None:
    """Gives everything that a context has wrapped its state.

    Raises:
        InvalidCheckpointException: The state is of another number of models, optimizers or schedulers, or of
            other ones.
    """
    models = state.get("models_state_dict", [])
    _check_count("models", context.models, models, recorded_class)
    for model, weights in zip(context.models, models, strict=True):
        layout.load_model(model, weights, recorded_class=recorded_class)
    optimizers = state.get("optimizers_state_dict", [])
    _check_count("optimizers", context.optimizers, optimizers, recorded_class)
    for optimizer, values in zip(context.optimizers, optimizers, strict=True):
        try:
            optimizer.load_state_dict(values)
        except (ValueError, KeyError) as failure:
            raise InvalidCheckpointException(
                f"the checkpoint does not fit this trial's {type(optimizer).__name__}: {failure}"
            ) from failure
    schedulers = state.get("lr_schedulers_state_dict", [])
    _check_count("lr_schedulers", context.lr_schedulers, schedulers, recorded_class)
    for scheduler, values in zip(context.lr_schedulers, schedulers, strict=True):
        scheduler.load_state_dict(values)
    precision = context._precision
    for name, target in (("scaler_state_dict", precision.scaler), ("amp_state", precision.apex)):
        if target is not None and name in state:
            target.load_state_dict(state[name])
        elif (target is None) != (name not in state):
            _log.warning(
                "mixed precision is %s, and in the checkpoint it is not so", "off" if target is None else "on"
            )


def _check_count(kind: str, ours: Sequence[Any], saved: Sequence[Any], recorded_class: str) -> None:
    if len(ours) == len(saved):
        return
    of = f" of {recorded_class}" if recorded_class else ""
    raise InvalidCheckpointException(
        f"the checkpoint{of} has {len(saved)} {kind}, and this trial has wrapped {len(ours)}: it is another "
        "trial's, "
        f"or wrap_...() was not called for all {kind}"
    )


def trial_class_name(trial_class: type) -> str:
    """Returns ``module:Class`` from which the class can be imported, also of the script that is running."""
    module = trial_class.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        module = spec.name if spec is not None else Path(file).stem if file else module
    return f"{module}:{trial_class.__qualname__}"


def _recorded_class(directory: Path) -> str:
    path = directory / layout.LOAD_DATA_FILE
    return str(json.loads(path.read_text()).get("trial_cls_spec", "")) if path.exists() else ""


def _metadata(progress: Progress) -> dict[str, Any]:
    return {
        "determined_version": resolute.__version__,
        "steps_completed": progress.step,
        "latest_batch": progress.step,
        "framework": f"torch-{torch.__version__}",
        "format": "pickle",
    }


@contextlib.contextmanager
def opened(context: PyTorchTrialContext, checkpoint: str | None) -> Iterator[Path | None]:
    """Gives the directory of a checkpoint, and tells the context how far training was in it.

    Args:
        context: The trial's context.
        checkpoint: Its identifier; None for none.
    """
    if checkpoint is None:
        context._steps_completed = 0
        yield None
        return
    with context._core.checkpoint.restore_path(checkpoint) as directory:
        state = layout.TrialState.read(directory)
        goes_on = state is not None and state.trial_id == context.get_trial_id()
        context._steps_completed = state.batches_trained if state is not None and goes_on else 0
        if state is not None and goes_on and state.seed is not None:
            context._trial_seed = state.seed
        yield directory
