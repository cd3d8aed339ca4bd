"""The contents of a ``PyTorchTrial``'s checkpoints."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from resolute.pytorch.backends import random_state
from resolute.pytorch.checkpointing import layout
from resolute.pytorch.checkpointing.rank_state import RankState
from resolute.pytorch.checkpointing.trainable import restore_trainable, trainable
from resolute.pytorch.metrics.aggregation import TrainingMetrics
from resolute.pytorch.trial.callbacks import Callbacks
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.trial_errors import InvalidCheckpointException
from resolute.trials.trial_state import LOAD_DATA_FILE

_log = logging.getLogger("resolute.pytorch")


class TrialContents:
    """The state of models, optimizers, schedulers and callbacks. All ranks share it, and it is saved once.

    Args:
        context: The trial's context.
        callbacks: Its callbacks.
        metrics: Metrics that are not reported yet. They are part of a checkpoint between two reports.
    """

    trial_type = "PyTorchTrial"
    needs_all_ranks = False

    def __init__(
        self, context: PyTorchTrialContext, *, callbacks: Callbacks, metrics: TrainingMetrics
    ) -> None:
        self._context = context
        self._callbacks = callbacks
        self._own = RankState(context, metrics)

    def capture(self, step: int) -> dict[str, Any]:
        """Returns the chief's state in the form that callbacks get; every participating rank calls it."""
        if self._context.distributed.rank:
            return {}
        state = self._state()
        for callback in self._callbacks:
            callback.on_checkpoint_save_start(state)
        return state

    def write(self, directory: Path, state: Mapping[str, Any], *, step: int) -> None:
        """Writes this rank's files."""
        rank = self._context.distributed.rank
        if rank == 0:
            torch.save(state, directory / layout.STATE_FILE)
            self._callbacks.end_write(str(directory))
        own = {**self._own.capture(step), "gradients": self._gradients()}
        torch.save(own, directory / layout.rank_file(rank))

    def load(self, directory: Path, *, resumes: bool) -> None:
        """Restores the files.

        Raises:
            InvalidCheckpointException: It is another model's.
        """
        context = self._context
        state = layout.read_state(directory)
        for callback in self._callbacks:
            callback.on_checkpoint_load_start(state)
        if resumes:
            restore_trainable(context, state.get("trainable", {}))
        apply_state(context, state, recorded_class=_recorded_class(directory))
        self._callbacks.restore(state.get("callbacks", {}))
        path = directory / layout.rank_file(context.distributed.rank)
        own: dict[str, Any] = (
            torch.load(path, weights_only=False, map_location="cpu") if path.exists() else {}
        )
        fits = self._own.restore(own, resumes=resumes, random_numbers=state.get("rng_state"))
        gradients = own.get("gradients") or ()
        if fits and resumes:
            self._restore_gradients(gradients)
        elif resumes and gradients:
            _log.warning("gradients that waited for a step are left out: they are of another number of ranks")

    def _state(self) -> dict[str, Any]:
        context = self._context
        state: dict[str, Any] = {
            "models_state_dict": [layout.unwrap_model(model).state_dict() for model in context.models],
            "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
            "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
            "trainable": trainable(context),
            "callbacks": self._callbacks.state(),
            "rng_state": random_state.capture(context.device),
        }
        precision = context._precision
        if precision.scaler is not None:
            state["scaler_state_dict"] = precision.scaler.state_dict()
        if precision.apex is not None:
            state["amp_state"] = precision.apex.state_dict()
        return state

    def _gradients(self) -> list[list[torch.Tensor | None]] | None:
        """Returns gradients that no optimizer step has applied yet; None without any."""
        waiting = [[parameter.grad for parameter in model.parameters()] for model in self._context.models]
        return waiting if any(gradient is not None for model in waiting for gradient in model) else None

    def _restore_gradients(self, saved: Sequence[Sequence[torch.Tensor | None]]) -> None:
        for model, gradients in zip(self._context.models, saved, strict=False):
            for parameter, gradient in zip(model.parameters(), gradients, strict=False):
                parameter.grad = None if gradient is None else gradient.to(parameter.device)


def apply_state(context: PyTorchTrialContext, state: Mapping[str, Any], *, recorded_class: str = "") -> None:
    """Restores the state of everything that a context has wrapped.

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


def _recorded_class(directory: Path) -> str:
    path = directory / LOAD_DATA_FILE
    return str(json.loads(path.read_text()).get("trial_cls_spec", "")) if path.exists() else ""
