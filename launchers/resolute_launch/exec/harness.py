"""Runs a Trial class that an experiment's config names: ``python -m resolute_launch.harness module:Class``.

On a cluster the config and the search decide how it is trained. Without a cluster (``resolute experiment
create --local --test-mode``) it trains one batch, as a test.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import resolute
from resolute.errors import InvalidArgumentError
from resolute.info import TRIAL, ClusterInfo
from resolute.runtime.experiment_config import ExperimentConfig

if TYPE_CHECKING:
    from resolute.pytorch import Trainer, TrainUnit
    from resolute.pytorch.trial.base_context import TrialContext

_STACKS_SECONDS = 30.0
"""A trial that is debugged shows what all of its threads do, this often."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the class; returns the exit code.

    Args:
        arguments: The command line; default this process's own.
    """
    parser = argparse.ArgumentParser(description="Runs a Trial class.")
    parser.add_argument("train_entrypoint", metavar="MODULE:CLASS")
    entrypoint: str = parser.parse_args(arguments).train_entrypoint
    info = resolute.get_cluster_info()
    managed = info is not None and info.task_type == TRIAL
    managed_config = info.trial._config if info is not None and managed else None  # noqa: SLF001 - documented
    config = ExperimentConfig(_local_config() if managed_config is None else managed_config)
    _log_as(debug=config.debug_enabled())
    sys.path.insert(0, str(Path.cwd()))  # as an interpreter that runs a script there would have it
    trial_class = load_class(entrypoint)
    if info is not None and managed:
        _train(trial_class, info, config)
    else:
        _test(trial_class, config)
    return 0


def load_class(entrypoint: str) -> Any:
    """Imports a Trial class.

    Args:
        entrypoint: ``module:Class`` or ``path/file.py:Class``, where the module may be in a package, and the
            class in another; without a module the working directory's ``__init__.py`` is meant, or its only
            file of Python.

    Raises:
        InvalidArgumentError: There is no such module or class.
    """
    from resolute.trials.code.trial_class import import_class, module_of

    module_name = module_of(entrypoint)
    # A module of the same name that something imported before is not the model definition's.
    sys.modules.pop(module_name, None)
    try:
        return import_class(entrypoint, Path.cwd())
    except ModuleNotFoundError as failure:
        if failure.name is None or failure.name not in {module_name, module_name.partition(".")[0]}:
            raise
        names = sorted(path.name for path in Path.cwd().iterdir())
        raise InvalidArgumentError(
            f"the entrypoint {entrypoint!r} names the module {module_name}, which is not in the model "
            f"definition: that holds {', '.join(names) or 'nothing'}"
        ) from failure
    except AttributeError as failure:
        if failure.name not in entrypoint.partition(":")[2].split("."):
            raise
        raise InvalidArgumentError(
            f"the entrypoint {entrypoint!r} names a class that {module_name or 'the model definition'} "
            "does not have"
        ) from failure


def _train(trial_class: Any, info: ClusterInfo, config: ExperimentConfig) -> None:
    if _is_keras(trial_class):
        from resolute.keras.trial import training

        training.train(trial_class, info, config)
        return
    from resolute import pytorch

    size = info.trial.hparams.get("global_batch_size")
    with _context(trial_class, info.trial.hparams, config) as context:
        if context.distributed.rank and not config.debug_enabled():
            logging.getLogger().setLevel(logging.WARNING)
        trainer = _trainer(trial_class, context)
        with _measured(context):
            trainer.fit(
                checkpoint_period=_period(config, "min_checkpoint_period", size),
                validation_period=_period(config, "min_validation_period", size),
                reporting_period=pytorch.Batch(config.scheduling_unit()),
                checkpoint_policy=str(config.get("checkpoint_policy", "best")),
                latest_checkpoint=info.latest_checkpoint,
                step_zero_validation=bool(config.get("perform_initial_validation", False)),
                profiling_enabled=config.profiling_enabled(),
            )


def _test(trial_class: Any, config: ExperimentConfig) -> None:
    hparams = json.loads(os.environ.get("DET_HPARAMS", "{}"))
    if _is_keras(trial_class):
        from resolute.keras.trial import training

        training.test_one_batch(trial_class, config, hparams=hparams)
        return
    from resolute import pytorch

    with _context(trial_class, hparams, config) as context:
        _trainer(trial_class, context).fit(max_length=pytorch.Batch(1), test_mode=True)


@contextlib.contextmanager
def _context(
    trial_class: Any, hparams: Mapping[str, Any], config: ExperimentConfig
) -> Iterator[TrialContext]:
    """Returns the context of the trial's kind, as the config wants it."""
    from resolute import pytorch
    from resolute.pytorch import deepspeed

    if _is_deepspeed(trial_class):
        with deepspeed.init(hparams=hparams, exp_conf=config) as engines:
            yield engines
        return
    optimizations = config.get_optimizations_config()
    frequency = int(optimizations.get("aggregation_frequency", 1))
    with pytorch.init(hparams=hparams, exp_conf=config, aggregation_frequency=frequency) as context:
        context._average_aggregated_gradients = bool(  # noqa: SLF001 - what only a config can say
            optimizations.get("average_aggregated_gradients", True)
        )
        context._compress_gradients = bool(  # noqa: SLF001 - likewise
            optimizations.get("gradient_compression", False)
        )
        yield context


def _measured(context: TrialContext) -> AbstractContextManager[None]:
    """Reports what DeepSpeed measures, where a search for a DeepSpeed config asks for that."""
    hparams = context._hparams or {}  # noqa: SLF001 - a trial need not have any
    if not hparams.get("_use_dsat_mode"):
        return contextlib.nullcontext()
    from resolute.pytorch.deepspeed.measurements import measure_operation

    return measure_operation(context._core)  # noqa: SLF001 - the harness is part of the trainer


def _trainer(trial_class: Any, context: Any) -> Trainer:
    from resolute import pytorch
    from resolute.pytorch import deepspeed

    kind = deepspeed.Trainer if _is_deepspeed(trial_class) else pytorch.Trainer
    trainer = kind(trial_class(context), context)
    trainer._from_trainer = False  # noqa: SLF001 - the class can be made again from a config alone
    return trainer


def _is_keras(trial_class: Any) -> bool:
    """Whether it is a trial in Keras, without importing Keras, or torch, for what is none."""
    module = sys.modules.get("resolute.keras.trial.definition")
    if module is None or not isinstance(trial_class, type):
        return False
    return issubclass(trial_class, module.TFKerasTrial)


def _is_deepspeed(trial_class: Any) -> bool:
    from resolute.pytorch.deepspeed import DeepSpeedTrial

    return isinstance(trial_class, type) and issubclass(trial_class, DeepSpeedTrial)


def _period(config: Mapping[str, Any], name: str, global_batch_size: Any) -> TrainUnit | None:
    from resolute import pytorch

    length = config.get(name)
    if isinstance(length, int):
        length = {"batches": length}
    if not length or not any(length.values()):
        return None
    return pytorch.TrainUnit.from_config(length, global_batch_size)


def _local_config() -> Mapping[str, Any]:
    config: Mapping[str, Any] = json.loads(os.environ.get("DET_EXPERIMENT_CONFIG", "{}"))
    return config


def _log_as(*, debug: bool) -> None:
    logging.basicConfig(level=logging.DEBUG if debug else logging.INFO, format=resolute.LOG_FORMAT)
    if debug:
        faulthandler.dump_traceback_later(_STACKS_SECONDS, repeat=True)


if __name__ == "__main__":
    sys.exit(main())
