"""The context of a trial with DeepSpeed's engines."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from resolute import core
from resolute.pytorch.deepspeed.library import import_deepspeed
from resolute.pytorch.deepspeed.model_parallel import (
    ModelParallelUnit,
    make_data_parallel_mpu,
    make_deepspeed_mpu,
)
from resolute.pytorch.trial.base_context import TrialContext
from resolute.trial_errors import InvalidExperimentException

_log = logging.getLogger("resolute.pytorch.deepspeed")
_IGNORED_OPTIMIZATIONS = {
    "average_aggregated_gradients": True,
    "gradient_compression": False,
    "tensor_fusion_threshold": 64,
    "tensor_fusion_cycle_time": 5,
    "auto_tune_tensor_fusion": False,
}
"""Fields of the config's section ``optimizations`` that are other frameworks', and their defaults."""


class DeepSpeedTrialContext(TrialContext):
    """The platform's features for a ``DeepSpeedTrial``. Get it from ``deepspeed.init()``.

    Optimizers and schedulers belong to the engines, which step and save them.

    Raises:
        InvalidExperimentException: The config asks for mixed precision or aggregated gradients, which are set
            in DeepSpeed's config.
    """

    def __init__(  # noqa: PLR0913 - the documented constructor
        self,
        core_context: core.Context,
        trial_seed: int | None,
        hparams: Mapping[str, Any] | None,
        slots_per_trial: int,
        num_gpus: int,
        exp_conf: Mapping[str, Any] | None,
        steps_completed: int,
        enable_tensorboard_logging: bool = True,
        *,
        debug_enabled: bool = False,
    ) -> None:
        super().__init__(
            core_context,
            trial_seed=trial_seed,
            hparams=hparams,
            slots=1,  # how ranks share a batch is for DeepSpeed's config to say
            exp_conf=exp_conf,
            steps_completed=steps_completed,
            debug_enabled=debug_enabled,
            tensorboard=enable_tensorboard_logging,
        )
        self._check_optimizations()
        self._mpu = make_data_parallel_mpu(self.distributed)
        self._mpu_was_set = False
        self._manual_grad_accumulation = False
        self._data_repro_checks_disabled = False

    # What is wrapped.

    def wrap_model_engine(self, model: Any) -> Any:
        """Registers an engine: its state is saved in checkpoints.

        The first one decides the sizes of batches, and with a pipeline the part of the data of each rank.

        Args:
            model: The first thing that ``deepspeed.initialize()`` returns.

        Returns:
            The engine.

        Raises:
            InvalidExperimentException: It is no engine.
        """
        library = import_deepspeed()
        if not isinstance(model, library.DeepSpeedEngine):
            raise InvalidExperimentException(
                f"wrap_model_engine() takes the engine that deepspeed.initialize() returns first, not a "
                f"{type(model).__name__}"
            )
        if not self.models:
            if isinstance(model, library.PipelineEngine):
                self._mpu = make_deepspeed_mpu(model.mpu)
            if self._global_batch_size is None:
                self._global_batch_size = model.train_batch_size()
        elif model.train_micro_batch_size_per_gpu() != self.train_micro_batch_size_per_gpu:
            _log.warning(
                "engine %d has micro batches of another size than the first: that of the first counts",
                len(self.models),
            )
        self.models.append(model)
        return model

    def set_mpu(self, mpu: ModelParallelUnit) -> None:
        """Sets which part of the data this rank has, for model parallelism other than DeepSpeed's pipeline.

        Args:
            mpu: The unit of this rank.

        Raises:
            InvalidExperimentException: No engine is wrapped yet, it is called a second time, or the chief
                would have no metrics to report.
        """
        if not self.models:
            raise InvalidExperimentException("set_mpu() must come after the first wrap_model_engine()")
        if self._mpu_was_set:
            raise InvalidExperimentException("set_mpu() can be called once only")
        averages = self._exp_conf is None or self._exp_conf.average_training_metrics_enabled()
        if self.distributed.rank == 0 and not mpu.should_report_metrics and not averages:
            raise InvalidExperimentException(
                "the chief's unit does not report metrics, so that they must come from the other ranks: set "
                "optimizations.average_training_metrics to true in the config"
            )
        self._mpu_was_set = True
        self._mpu = mpu

    def disable_auto_grad_accumulation(self) -> None:
        """Makes the platform call ``train_batch`` once for each batch, with all its micro batches."""
        self._manual_grad_accumulation = True

    def disable_dataset_reproducibility_checks(self) -> None:
        """Allows loaders of torch or DeepSpeed. The trial must then shard, shuffle and skip data itself."""
        self._data_repro_checks_disabled = True

    # Sizes of batches.

    @property
    def use_pipeline_parallel(self) -> bool:
        """Whether an engine is a pipeline, whose ``train_batch`` takes all micro batches at once."""
        return any(isinstance(model, import_deepspeed().PipelineEngine) for model in self.models)

    @property
    def train_micro_batch_size_per_gpu(self) -> int:
        """The records of a micro batch of one slot, for data loaders.

        Raises:
            InvalidExperimentException: No engine is wrapped yet.
        """
        return int(self._first("train_micro_batch_size_per_gpu").train_micro_batch_size_per_gpu())

    @property
    def num_micro_batches_per_slot(self) -> int:
        """The micro batches of a batch: the steps of gradient accumulation.

        Raises:
            InvalidExperimentException: No engine is wrapped yet.
        """
        return int(self._first("num_micro_batches_per_slot").gradient_accumulation_steps())

    def get_train_micro_batch_size_per_gpu(self) -> int:
        """Returns the property ``train_micro_batch_size_per_gpu``.

        Raises:
            InvalidExperimentException: No engine is wrapped yet.
        """
        return self.train_micro_batch_size_per_gpu

    def get_num_micro_batches_per_slot(self) -> int:
        """Returns the property ``num_micro_batches_per_slot``.

        Raises:
            InvalidExperimentException: No engine is wrapped yet.
        """
        return self.num_micro_batches_per_slot

    def get_per_slot_batch_size(self) -> int:
        """Returns the records of a batch of one slot, in all its micro batches.

        Raises:
            InvalidExperimentException: No engine is wrapped yet.
        """
        return self.train_micro_batch_size_per_gpu * self.num_micro_batches_per_slot

    @property
    def _calls_per_batch(self) -> int:
        """The number of calls of ``train_batch`` for each batch."""
        if self._manual_grad_accumulation or self.use_pipeline_parallel:
            return 1
        return self.num_micro_batches_per_slot

    def _first(self, wanted: str) -> Any:
        if not self.models:
            raise InvalidExperimentException(f"call wrap_model_engine() before asking for {wanted}")
        return self.models[0]

    def _check_optimizations(self) -> None:
        optimizations = {} if self._exp_conf is None else self._exp_conf.get_optimizations_config()
        precision = optimizations.get("mixed_precision", "O0")
        if precision != "O0":
            raise InvalidExperimentException(
                f"optimizations.mixed_precision is {precision}: for a DeepSpeedTrial, leave it out and set "
                "fp16 or bf16 in DeepSpeed's config"
            )
        frequency = optimizations.get("aggregation_frequency", 1)
        if frequency > 1:
            raise InvalidExperimentException(
                f"optimizations.aggregation_frequency is {frequency}: for a DeepSpeedTrial, leave it out and "
                "set gradient_accumulation_steps in DeepSpeed's config"
            )
        for name, default in _IGNORED_OPTIMIZATIONS.items():
            if optimizations.get(name, default) != default:
                _log.warning("optimizations.%s has no effect on a DeepSpeedTrial", name)
