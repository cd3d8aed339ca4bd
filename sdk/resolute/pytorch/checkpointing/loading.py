"""Loads a trial from a checkpoint, outside of training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resolute.core import _dummy_init
from resolute.pytorch.backends.gradient_exchange import SingleRank
from resolute.pytorch.checkpointing import layout
from resolute.pytorch.checkpointing.contents import apply_state
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.pytorch.trial.legacy import adapt_trial, is_legacy_trial
from resolute.runtime.import_path import import_from_path
from resolute.trials.code.trial_class import import_class
from resolute.trials.trial_state import CODE_DIRECTORY, LOAD_DATA_FILE, METADATA_FILE


class CheckpointLoadContext(PyTorchTrialContext):
    """The context of a trial that is loaded for inspection or inference, not for training.

    Args:
        hparams: Hyperparameters for the trial.
        exp_conf: Experiment config for the trial.

    Examples:
        >>> from resolute import pytorch
        >>> pytorch.CheckpointLoadContext(hparams={"lr": 0.1}).get_hparam("lr")
        0.1
    """

    def __init__(
        self, hparams: Mapping[str, Any] | None = None, exp_conf: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(
            _dummy_init(),
            trial_seed=0,
            hparams=hparams,
            slots_per_trial=1,
            num_gpus=0,
            exp_conf=exp_conf,
            aggregation_frequency=1,
            steps_completed=0,
            managed_training=False,
            debug_enabled=False,
            enable_tensorboard_logging=False,
            backend=SingleRank(),
        )


def load_trial_from_checkpoint_path(
    path: str,
    trial_class: type | None = None,
    trial_kwargs: Mapping[str, Any] | None = None,
    torch_load_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Creates the trial of a checkpoint and loads its weights.

    Args:
        path: Directory that the checkpoint was downloaded to.
        trial_class: The trial's class; default the one that the checkpoint names, from the code that it
            holds.
        trial_kwargs: Arguments of the trial besides ``context``; or ``context`` too, a
            ``CheckpointLoadContext``.
        torch_load_kwargs: Arguments for ``torch.load``, such as ``map_location``.
        kwargs: Older way to give ``torch_load_kwargs``.

    Returns:
        The trial. Of one in the style of the first releases, whose model the framework made: that model.

    Raises:
        ValueError: Both ways of arguments for ``torch.load`` are used, or the trial's class cannot be
            imported.
        AssertionError: The directory holds neither ``load_data.json`` nor ``metadata.json``.
        InvalidCheckpointException: The checkpoint is of another trial, or not of a PyTorch trial.

    Examples:
        ``Line`` is the trial that ``PyTorchTrial`` has as its example.

        >>> import os
        >>> from pathlib import Path
        >>> import torch
        >>> from resolute import pytorch
        >>> with pytorch.init() as context:
        ...     trained = Line(context)
        ...     pytorch.Trainer(trained, context).fit(max_length=pytorch.Batch(3))
        >>> data = Path(os.environ.get("XDG_DATA_HOME", "~/.local/share")).expanduser()
        >>> made = (data / "resolute" / "checkpoints").glob("*/load_data.json")
        >>> newest = max(made, key=lambda path: path.stat().st_mtime).parent
        >>> loaded = pytorch.load_trial_from_checkpoint_path(newest, trial_class=Line)
        >>> torch.equal(loaded.model.weight, trained.model.weight)
        True
    """
    if kwargs and torch_load_kwargs:
        raise ValueError("give the arguments for torch.load as torch_load_kwargs, and no others besides")
    directory = Path(path)
    recorded = _read_description(directory)
    trial, context = _make_trial(directory, recorded, trial_class, dict(trial_kwargs or {}))
    state = layout.read_state(directory, device=context.device, **dict(torch_load_kwargs or kwargs))
    fitting = _fitting_state(state, context)
    apply_state(context, fitting, recorded_class=str(recorded.get("trial_cls_spec") or ""))
    return layout.unwrap_model(context.models[0]) if is_legacy_trial(trial) else trial


def _make_trial(
    directory: Path, recorded: Mapping[str, Any], trial_class: type | None, arguments: dict[str, Any]
) -> tuple[Any, PyTorchTrialContext]:
    """Creates the trial and its context, as at the start of training."""
    code = directory / CODE_DIRECTORY
    code = code if code.is_dir() else directory
    with import_from_path(code):
        trial_type = trial_class or _import_class(str(recorded.get("trial_cls_spec") or ""), directory, code)
        context = arguments.pop("context", None) or CheckpointLoadContext(
            recorded.get("hparams"), recorded.get("experiment_config")
        )
        trial = trial_type(context, **arguments)
        if is_legacy_trial(trial):
            # It makes the model, which may import more of the code.
            adapt_trial(trial, context)
    return trial, context


def _fitting_state(state: Mapping[str, Any], context: PyTorchTrialContext) -> dict[str, Any]:
    """Leaves out optimizers, or schedulers, of which the state and the context differ in number."""
    fitting = dict(state)
    for part in ("optimizers", "lr_schedulers"):
        name = f"{part}_state_dict"
        if len(getattr(context, part)) != len(state.get(name, [])):
            fitting[name] = []
            setattr(context, part, [])
        else:
            fitting[name] = state.get(name, [])
    return fitting


def _read_description(directory: Path) -> dict[str, Any]:
    load_data = directory / LOAD_DATA_FILE
    if load_data.exists():
        described: dict[str, Any] = json.loads(load_data.read_text())
        return described
    metadata = directory / METADATA_FILE
    assert metadata.exists(), (
        f"{directory} is not a checkpoint: it holds neither {LOAD_DATA_FILE} nor {METADATA_FILE}"
    )
    older: dict[str, Any] = json.loads(metadata.read_text())
    config = older.get("experiment_config") or {}
    return {
        "hparams": older.get("hparams"),
        "experiment_config": config or None,
        "trial_cls_spec": older.get("trial_cls_spec") or config.get("entrypoint"),
    }


def _import_class(spec: str, directory: Path, code: Path) -> Any:
    if ":" not in spec:
        raise ValueError(
            f"the checkpoint in {directory} does not say which class its trial is of: pass trial_class"
        )
    try:
        return import_class(spec, code)
    except Exception as failure:
        raise ValueError(
            f"the class {spec} of the checkpoint in {directory} cannot be imported ({failure}): "
            "pass trial_class"
        ) from failure
