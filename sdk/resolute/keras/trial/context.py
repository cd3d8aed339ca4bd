"""The context of a trial in Keras."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolute import core
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.runtime.sampling import sample
from resolute.trials.hyperparameters import Settings

_UNSET: Any = object()


@dataclass
class FitOptions:
    """The options that ``configure_fit`` sets."""

    verbose: bool = True
    class_weight: Mapping[int, float] | None = None
    workers: int = 1
    use_multiprocessing: bool = False
    max_queue_size: int = 10
    shuffle: bool = True
    validation_steps: int | None = None


class TFKerasExperimentalContext:
    """Methods of older releases, which were removed.

    Examples:
        >>> from resolute.keras import TFKerasExperimentalContext
        >>> TFKerasExperimentalContext().cache_train_dataset(None, "digits", "1")
        Traceback (most recent call last):
        ...
        RuntimeError: cache_train_dataset() was removed: use tf.data.Dataset.cache()
    """

    def cache_train_dataset(self, *_args: Any, **_options: Any) -> Any:
        """Is refused.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("cache_train_dataset() was removed: use tf.data.Dataset.cache()")

    def cache_validation_dataset(self, *_args: Any, **_options: Any) -> Any:
        """Is refused.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError("cache_validation_dataset() was removed: use tf.data.Dataset.cache()")


class TFKerasTrialContext(Settings):
    """The context of a ``TFKerasTrial``.

    Args:
        core_context: The Core API.
        hparams: The hyperparameters.
        exp_conf: The experiment's config; None if there is none.
        trial_seed: Seed of the trial.

    Attributes:
        distributed: The other workers.
        model: The wrapped model.
        experimental: Methods of older releases.

    Examples:
        The platform makes it, and gives it to the trial; a test may make one too.

        >>> from resolute import core
        >>> from resolute.keras import TFKerasTrialContext
        >>> with core.init() as core_context:
        ...     hparams = {"global_batch_size": 32, "lr": 0.1}
        ...     context = TFKerasTrialContext(core_context, hparams=hparams, exp_conf=None, trial_seed=0)
        ...     context.get_hparam("lr"), context.get_per_slot_batch_size()
        (0.1, 32)
    """

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Mapping[str, Any] | None,
        exp_conf: Mapping[str, Any] | None,
        trial_seed: int,
    ) -> None:
        super().__init__(hparams, exp_conf, slots=core_context.distributed.size)
        self.distributed = core_context.distributed
        self.experimental = TFKerasExperimentalContext()
        self.model: Any = None
        self._core = core_context
        self._trial_seed = trial_seed
        self._stop_requested = False
        self._optimizers: list[Any] = []
        self._dataset_wrapped = False
        self._fit_options = FitOptions()

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TFKerasTrialContext:
        """Creates a context off cluster, with hyperparameters sampled from those of a config.

        Args:
            config: An experiment config. Equal seeds in its ``reproducibility`` give equal draws.

        Raises:
            InvalidConfigError: A hyperparameter lacks what its type needs.
            InvalidExperimentException: The batch has no record.
        """
        conf = ExperimentConfig(config)
        seed = conf.experiment_seed()
        hparams = sample(conf.get("hyperparameters") or {}, seed=seed)
        return cls(core._dummy_init(), hparams=hparams, exp_conf=conf, trial_seed=seed)

    def wrap_model(self, model: Any) -> Any:
        """Registers the model. Compile the returned one.

        Args:
            model: The model; one for each trial.
        """
        self.model = model
        return model

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Registers an optimizer. Pass the returned one to ``compile``.

        Args:
            optimizer: The optimizer.
        """
        self._optimizers.append(optimizer)
        return optimizer

    def wrap_dataset(self, dataset: Any, shard_dataset: bool = True) -> Any:
        """Registers a ``tf.data.Dataset``. Return the returned one from the loader method.

        Args:
            dataset: The dataset.
            shard_dataset: Whether workers share its records; a trial here has one worker.
        """
        self._dataset_wrapped = True
        return dataset

    def configure_fit(
        self,
        verbose: bool | None = None,
        class_weight: Mapping[int, float] | None = _UNSET,
        workers: int | None = None,
        use_multiprocessing: bool | None = None,
        max_queue_size: int | None = None,
        shuffle: bool | None = None,
        validation_steps: int | None = _UNSET,
    ) -> None:
        """Sets how training reads its data. Later calls change only the options that they pass.

        Args:
            verbose: Whether progress is written.
            class_weight: Weights of records by class.
            workers: Threads that read batches of a sequence ahead.
            use_multiprocessing: Without effect: threads are used.
            max_queue_size: Batches that are read ahead.
            shuffle: Whether the batches of a sequence are read in another order in each pass.
            validation_steps: Batches of a validation with a ``tf.data.Dataset``; None for all.
        """
        given: dict[str, Any] = {
            "verbose": verbose,
            "workers": workers,
            "use_multiprocessing": use_multiprocessing,
            "max_queue_size": max_queue_size,
            "shuffle": shuffle,
        }
        chosen = {name: value for name, value in given.items() if value is not None}
        optional: dict[str, Any] = {"class_weight": class_weight, "validation_steps": validation_steps}
        chosen |= {name: value for name, value in optional.items() if value is not _UNSET}
        for name, value in chosen.items():
            setattr(self._fit_options, name, value)

    def get_stop_requested(self) -> bool:
        """Returns whether the trial asked to be stopped."""
        return self._stop_requested

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Asks to stop at the next report, validation or checkpoint.

        Raises:
            AssertionError: It is no bool.
        """
        assert isinstance(stop_requested, bool), f"a bool was expected, not {stop_requested!r}"
        self._stop_requested = stop_requested

    def get_experiment_id(self) -> int:
        """Returns the number of the experiment; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.experiment_id

    def get_trial_id(self) -> int:
        """Returns the number of the trial; 0 off cluster."""
        return 0 if self._core.info is None else self._core.info.trial.trial_id

    def get_trial_seed(self) -> int:
        """Returns the seed of the trial, equal in all its runs."""
        return self._trial_seed

    def get_tensorboard_path(self) -> Path:
        """Returns the directory in which this process may write TensorBoard events."""
        return self._core.train.get_tensorboard_path()
