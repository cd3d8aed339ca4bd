"""Tests a trial's class without a cluster, by the functions of the first releases."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from resolute import core
from resolute.pytorch.training.trainer import Trainer
from resolute.pytorch.trial.context import PyTorchTrialContext
from resolute.trials.units import Batch


class Mode(enum.Enum):
    """The place where ``create`` trains."""

    CLUSTER = "CLUSTER"
    LOCAL = "LOCAL"


def create_trial_instance(
    trial_def: type,
    checkpoint_dir: str | None = None,
    config: Mapping[str, Any] | None = None,
    hparams: Mapping[str, Any] | None = None,
) -> Any:
    """Creates a trial off cluster, for inspection.

    Args:
        trial_def: Its class.
        checkpoint_dir: Where its checkpoints go if it is trained; default the user's directory of data.
        config: Config of an experiment.
        hparams: Its hyperparameters; default drawn from those of the config.

    Returns:
        The trial.

    Raises:
        InvalidConfigError: A hyperparameter of the config lacks what its type needs.
    """
    return trial_def(_context(checkpoint_dir, config, hparams))


def create(
    trial_def: type,
    config: Mapping[str, Any] | None = None,
    local: bool | Mode = False,
    test: bool = False,
    *,
    mode: Mode = Mode.CLUSTER,
    **_submission: Any,
) -> Any:
    """Tests a trial's class off cluster: trains one batch, validates with one, and makes a checkpoint.

    Args:
        trial_def: The class.
        config: Config of an experiment, of which hyperparameters are drawn.
        local: True, together with ``test``; or ``Mode.LOCAL``.
        test: Whether only to test.
        mode: ``Mode.LOCAL``, in the place of ``local`` and ``test``.
        _submission: What submitting needs, such as ``context_dir``; without meaning here.

    Returns:
        The trial.

    Raises:
        RuntimeError: More is wanted than a test off cluster.
    """
    if Mode.LOCAL not in (mode, local) and not (local is True and test):
        raise RuntimeError(
            "create() only tests a trial off cluster, by mode=Mode.LOCAL or local=True, test=True: submit an "
            f"experiment with entrypoint: MODULE:{trial_def.__name__}; or train here by "
            "pytorch.Trainer(...).fit(max_length=...)"
        )
    return test_one_batch(trial_def, config)


def test_one_batch(trial_class: type, config: Mapping[str, Any] | None = None) -> Any:  # noqa: PT028 - no test
    """Trains one batch off cluster, validates with one, and makes a checkpoint.

    Args:
        trial_class: The trial's class.
        config: Config of an experiment, of which hyperparameters are drawn.

    Returns:
        The trial.
    """
    context = _context(None, config, None)
    with context._core:
        trial = trial_class(context)
        Trainer(trial, context).fit(max_length=Batch(1), test_mode=True)
    return trial


def _context(
    checkpoint_dir: str | None, config: Mapping[str, Any] | None, hparams: Mapping[str, Any] | None
) -> PyTorchTrialContext:
    given = {} if hparams is None else {"hyperparameters": hparams}
    storage = core._dummy_init(checkpoint_storage=checkpoint_dir)
    return PyTorchTrialContext._from_sampled_hparams({**(config or {}), **given}, storage)
