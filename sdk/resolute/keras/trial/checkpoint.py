"""Checkpoints of a ``TFKerasTrial``, and the model of one of them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import resolute
from resolute.core import _dummy_init
from resolute.keras import random_state, weights
from resolute.keras.library import find_library
from resolute.keras.trial.callback_list import CallbackList
from resolute.keras.trial.context import TFKerasTrialContext
from resolute.keras.trial.data import adapt_data, first_batch, weigh_classes
from resolute.runtime.import_path import import_from_path
from resolute.trials.code.source import copy_code, trial_class_name
from resolute.trials.code.trial_class import import_class
from resolute.trials.counters import Progress
from resolute.trials.trial_state import (
    CODE_DIRECTORY,
    LOAD_DATA_FILE,
    METADATA_FILE,
    TrialState,
)

WEIGHTS = "determined-keras-model-weights"
"""What names of the files with weights begin with."""
_CALLBACKS_FILE = "determined-callbacks.v1.pkl"
_RANDOM_FILE = "rng_state.pkl"
_TRIAL_TYPE = "TFKerasTrial"


class Checkpointer:
    """Saves and loads the checkpoints of one trial.

    Args:
        context: The trial's context.
        trial_class: Its class.
        callbacks: Its callbacks.
    """

    def __init__(self, context: TFKerasTrialContext, trial_class: type, callbacks: CallbackList) -> None:
        self._context = context
        self._core = context._core
        self._trial_class = trial_class
        self._callbacks = callbacks

    def save(self, progress: Progress, *, chief_only: bool = False) -> str | None:
        """Saves a checkpoint and returns its UUID."""
        self._core.train.set_status("checkpointing")
        metadata = {
            "determined_version": resolute.__version__,
            "steps_completed": progress.step,
            "framework": f"keras-{find_library().__version__}",
            "format": "saved_weights",
        }
        with self._core.checkpoint.store_path(metadata, background=True) as (directory, uuid):
            weights.save_weights(self._context.model, str(directory / WEIGHTS))
            random_state.write(self._context.model, directory / _RANDOM_FILE)
            states = {"self": {"total_batches": progress.step}, "callbacks": self._callbacks.states()}
            (directory / _CALLBACKS_FILE).write_bytes(pickle.dumps(states))
            self._describe(directory, progress)
            self._callbacks.call_own("on_checkpoint_end", str(directory))
        progress.saved = progress.step
        self._core.train.set_status("training")
        return uuid

    def load(self, directory: Path, progress: Progress) -> None:
        """Restores a checkpoint; if another trial saved it, without the counters.

        Callbacks begin in between: they see its weights, and are given their states after that.
        """
        weights.load_weights(self._context.model, str(directory / WEIGHTS))
        self._callbacks.call("on_train_begin", {})
        states = directory / _CALLBACKS_FILE
        if states.exists():
            self._callbacks.restore(
                pickle.loads(states.read_bytes())["callbacks"]  # noqa: S301 - a checkpoint is trusted code
            )
        state = TrialState.read(directory)
        if state is not None and state.trial_id == self._context.get_trial_id():
            state.restore(progress)
        random_state.read(self._context.model, directory / _RANDOM_FILE)

    def _describe(self, directory: Path, progress: Progress) -> None:
        context = self._context
        state = TrialState.of(progress, trial_id=context.get_trial_id(), seed=context.get_trial_seed())
        state.write(directory)
        description = {
            "trial_type": _TRIAL_TYPE,
            "experiment_config": context._exp_conf,
            "hparams": context._hparams,
            "trial_cls_spec": trial_class_name(self._trial_class),
        }
        (directory / LOAD_DATA_FILE).write_text(json.dumps(description, default=str))
        copy_code(self._trial_class, directory / CODE_DIRECTORY, on_cluster=self._core.info is not None)


def build_weights(model: Any, data: Any) -> None:
    """Builds the weights of a model whose shapes are unknown, from the shapes of a batch."""
    if not model.built:
        model(weigh_classes(first_batch(data), None)[0])


def load_model_from_checkpoint_path(path: str, tags: list[str] | None = None) -> Any:  # noqa: ARG001 - documented
    """Creates the model of a trial's checkpoint and loads its weights.

    Args:
        path: Directory that the checkpoint was downloaded to.
        tags: Is not used.

    Raises:
        AssertionError: The directory is no checkpoint.
        ValueError: The checkpoint is of a trial of another kind.
        InvalidCheckpointException: The weights are another model's.

    Examples:
        >>> from resolute.keras import load_model_from_checkpoint_path
        >>> model = load_model_from_checkpoint_path(path)
        >>> model.name
        'sums'
    """
    directory = Path(path)
    description = directory / LOAD_DATA_FILE
    assert description.exists(), (
        f"{path} does not have either {LOAD_DATA_FILE} or {METADATA_FILE} of a TFKerasTrial: it is no "
        "checkpoint of one"
    )
    recorded = json.loads(description.read_text())
    if recorded.get("trial_type") != _TRIAL_TYPE:
        raise ValueError(
            f"the checkpoint in {path} is of a {recorded.get('trial_type')}, not of a {_TRIAL_TYPE}"
        )
    code = directory / CODE_DIRECTORY
    with import_from_path(code):
        trial_class = import_class(recorded["trial_cls_spec"], code)
        context = TFKerasTrialContext(
            _dummy_init(),
            hparams=recorded.get("hparams"),
            exp_conf=recorded.get("experiment_config"),
            trial_seed=0,
        )
        trial = trial_class(context)
        model = trial.build_model()
        if not model.built:
            loaded = trial.build_training_data_loader()
            size = context.get_per_slot_batch_size()
            build_weights(model, adapt_data(loaded, batch_size=size, wrapped=True))
    weights.load_weights(model, str(directory / WEIGHTS))
    return model
