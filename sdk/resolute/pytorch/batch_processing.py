"""Processes a data set once with a model, over all ranks, and resumes after interruptions."""

from __future__ import annotations

import abc
import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sized
from pathlib import Path
from typing import Any, cast

import torch
from torch.utils.data import BatchSampler, Dataset, IterableDataset, SequentialSampler
from torch.utils.data import DataLoader as TorchDataLoader

import resolute
from resolute import core
from resolute.core import DistributedContext, DummyDistributedContext
from resolute.info import trial_of
from resolute.pytorch.backends.devices import choose_device
from resolute.pytorch.backends.gradient_exchange import USE_HOROVOD, USE_TORCH_DISTRIBUTED, import_horovod
from resolute.pytorch.data.loader import adapt_batch_sampler, to_device
from resolute.pytorch.metrics.reducers import ReducerContext
from resolute.trial_errors import InvalidCheckpointException

_log = logging.getLogger("resolute.pytorch")
_PROGRESS_FILE = "batch_processing.json"


class TorchBatchProcessorContext(ReducerContext):
    """The context of a processor.

    Reducers that the processor wraps for validation are reduced after the last batch and reported as
    validation metrics.

    Args:
        core_context: The Core API.
        storage_path: Directory of the files for ``upload_path``.

    Examples:
        >>> from resolute import pytorch
        >>> class Evaluate(pytorch.TorchBatchProcessor):
        ...     def __init__(self, context):
        ...         self.context = context
        ...     def process_batch(self, batch, batch_idx):
        ...         metrics = {"mean": float(batch.float().mean())}
        ...         self.context.report_metrics("inference", batch_idx + 1, metrics)
        >>> pytorch.torch_batch_process(Evaluate, list(range(10)), batch_size=5)
    """

    def __init__(self, core_context: core.Context, storage_path: Path) -> None:
        super().__init__(core_context.distributed.allgather)
        self._core = core_context
        self._storage_path = storage_path
        self._uses_storage = False
        self._warned_types: set[type] = set()
        self.device = choose_device(core_context.distributed.local_rank)
        self.distributed = core_context.distributed

    def to_device(self, data: Any, warned_types: set[type] | None = None) -> Any:
        """Moves a batch, however nested, to this rank's device.

        Args:
            data: The batch.
            warned_types: Types that were warned of before, because they cannot be moved; None for those of
                this context.
        """
        return to_device(data, self.device, self._warned_types if warned_types is None else warned_types)

    def get_distributed_rank(self) -> int:
        """Returns this process's rank."""
        return self.distributed.rank

    def get_distributed_size(self) -> int:
        """Returns the number of ranks."""
        return self.distributed.size

    def get_tensorboard_path(self) -> Path:
        """Returns the directory in which this process may write TensorBoard events."""
        return self._core.train.get_tensorboard_path()

    def get_hparams(self) -> dict[str, Any]:
        """Returns the hyperparameters of the trial; empty without a trial."""
        trial = trial_of(self._core.info)
        return {} if trial is None else dict(trial.hparams)

    def prepare_model_for_inference(self, model: torch.nn.Module) -> torch.nn.Module:
        """Returns the model on this rank's device, ready for evaluation."""
        model.eval()
        return model.to(self.device)

    @contextlib.contextmanager
    def upload_path(self) -> Iterator[Path]:
        """Returns a directory whose files become this rank's part of every later checkpoint."""
        self._uses_storage = True
        self._storage_path.mkdir(parents=True, exist_ok=True)
        yield self._storage_path

    def report_metrics(self, group: str, steps_completed: int, metrics: Mapping[str, Any]) -> None:
        """Reports metrics of the trial or task that runs this.

        Args:
            group: Name of the group, such as ``inference``.
            steps_completed: The step at which they were measured.
            metrics: Values by names.
        """
        self._core.train.report_metrics(group, steps_completed, metrics)

    def report_task_using_model_version(self, model_version: Any) -> None:
        """Reports the model version that is used."""
        self._core.experimental.report_task_using_model_version(model_version)

    def report_task_using_checkpoint(self, checkpoint: Any) -> None:
        """Reports the checkpoint that is used."""
        self._core.experimental.report_task_using_checkpoint(checkpoint)


class TorchBatchProcessor(abc.ABC):
    """The user's code for each batch.

    Examples:
        >>> from resolute import pytorch
        >>> class Sum(pytorch.TorchBatchProcessor):
        ...     def __init__(self, context):
        ...         self.total = 0
        ...     def process_batch(self, batch, batch_idx):
        ...         self.total += int(batch.sum())
        ...     def on_finish(self):
        ...         print(self.total)
        >>> pytorch.torch_batch_process(Sum, list(range(10)), batch_size=4)
        45
    """

    @abc.abstractmethod
    def __init__(self, context: TorchBatchProcessorContext) -> None:
        """Creates the models and other state.

        Args:
            context: What the platform offers; keep it.
        """

    @abc.abstractmethod
    def process_batch(self, batch: Any, batch_idx: int) -> None:
        """Processes one batch.

        Args:
            batch: What the data set yields.
            batch_idx: Number of the batch of this rank, from 0.
        """

    def on_checkpoint_start(self) -> None:  # noqa: B027 - need not be overridden
        """Called before a checkpoint: write results now."""

    def on_finish(self) -> None:  # noqa: B027 - need not be overridden
        """Called after the last batch, before the last checkpoint."""


def torch_batch_process(
    batch_processor_cls: type[TorchBatchProcessor],
    dataset: Dataset[Any],
    batch_size: int | None = None,
    max_batches: int | None = None,
    checkpoint_interval: int = 5,
    dataloader_kwargs: Mapping[str, Any] | None = None,
    distributed_context: DistributedContext | None = None,
) -> None:
    """Processes a data set once; each rank processes its share.

    Args:
        batch_processor_cls: What is done with each batch.
        dataset: The data set; it must have a length.
        batch_size: Records of a batch, unless dataloader_kwargs says it; default 1.
        max_batches: Most batches of a rank; None for all, as are, with a warning, 0 and less, and more than
            there are.
        checkpoint_interval: Batches between two checkpoints.
        dataloader_kwargs: More arguments for torch's loader, such as ``num_workers``.
        distributed_context: The other ranks; default as the launch layer says.

    Raises:
        TypeError: The data set has no length.
        ValueError: An argument for the loader is one that is decided here.
        InvalidCheckpointException: The trial's latest checkpoint was made by something else.

    Examples:
        >>> from resolute import pytorch
        >>> class Count(pytorch.TorchBatchProcessor):
        ...     def __init__(self, context):
        ...         self.batches = 0
        ...     def process_batch(self, batch, batch_idx):
        ...         self.batches += 1
        ...     def on_finish(self):
        ...         print(self.batches, "batches")
        >>> pytorch.torch_batch_process(Count, list(range(10)), batch_size=4)
        3 batches
    """
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise TypeError("torch_batch_process() needs a data set with a length and an index, to share it out")
    options = dict(dataloader_kwargs or {})
    if batch_size is not None and "batch_size" in options:
        raise ValueError("batch_size stands in dataloader_kwargs too: give it once")
    batch_size = options.pop("batch_size", batch_size)
    decided = {"shuffle", "sampler", "batch_sampler", "drop_last"} & options.keys()
    if decided:
        raise ValueError(
            f"dataloader_kwargs must not have {', '.join(sorted(decided))}: that is decided here"
        )
    if checkpoint_interval < 1:
        raise ValueError(f"checkpoint_interval is {checkpoint_interval}; it must be at least 1")
    distributed = distributed_context or _join_launched_ranks()
    with core.init(distributed=distributed) as context, tempfile.TemporaryDirectory() as scratch:
        run = _BatchRun(context, batch_processor_cls, Path(scratch) / "output")
        sampler = SequentialSampler(cast("Sized", dataset))
        batches = BatchSampler(sampler, batch_size or 1, drop_last=False)
        shared = adapt_batch_sampler(
            batches, skip=run.done, num_replicas=distributed.size, rank=distributed.rank
        )
        loader: Any = TorchDataLoader(dataset, batch_sampler=shared, **options)
        # Ranks make checkpoints together, so all go through as many rounds as the first, who has the most.
        rounds = _limited(-(-len(batches) // distributed.size), max_batches)
        run.process(iter(loader), rounds=rounds, interval=checkpoint_interval)


class _BatchRun:
    """One pass through the data.

    Args:
        context: The Core API.
        processor_class: The user's class.
        storage: Directory for the processor's files.
    """

    def __init__(
        self, context: core.Context, processor_class: type[TorchBatchProcessor], storage: Path
    ) -> None:
        self._core = context
        self._context = TorchBatchProcessorContext(context, storage)
        self.done = self._load()
        self._processor = processor_class(self._context)
        self._context.reset_reducers()

    def process(self, batches: Iterator[Any], *, rounds: int, interval: int) -> None:
        """Processes batches from where an earlier run stopped."""
        while self.done < rounds:
            batch = next(batches, None)
            if batch is not None:
                self._processor.process_batch(batch, self.done)
            self.done += 1
            if self.done % interval == 0 and self.done < rounds:
                self._save()
                self._core.train.report_progress(self.done / rounds) if self._is_chief else None
                if self._core.preempt.should_preempt():
                    return
        metrics = self._context.reduce_metrics(for_training=False)
        if metrics and self._is_chief:
            self._core.train.report_validation_metrics(self.done, metrics)
        self._processor.on_finish()
        self._save()

    @property
    def _is_chief(self) -> bool:
        return self._core.distributed.rank == 0

    @property
    def _rank_directory(self) -> str:
        """Returns the directory of this rank's files in a checkpoint."""
        return f"rank_{self._core.distributed.rank}"

    def _load(self) -> int:
        latest = None if self._core.info is None else self._core.info.latest_checkpoint
        if latest is None:
            return 0
        with self._core.checkpoint.restore_path(latest) as directory:
            progress = directory / _PROGRESS_FILE
            if not progress.exists():
                raise InvalidCheckpointException(
                    f"checkpoint {latest} has no {_PROGRESS_FILE}: it was not made by torch_batch_process(), "
                    "which cannot go on from it"
                )
            state = json.loads(progress.read_text())
            if state["ranks"] != self._core.distributed.size:
                _log.warning("the checkpoint is of %d ranks: everything is processed again", state["ranks"])
                return 0
            self._restore_files(directory / self._rank_directory)
        return int(state["batches"])

    def _restore_files(self, directory: Path) -> None:
        """Copies the files of the previous run, so that the newest checkpoint has all of them."""
        if directory.is_dir():
            shutil.copytree(directory, self._context._storage_path)
            self._context._uses_storage = True

    def _save(self) -> None:
        self._processor.on_checkpoint_start()
        metadata = {"steps_completed": self.done, "latest_batch": self.done}
        with self._core.checkpoint.store_path(metadata, shard=True) as (directory, _):
            if self._is_chief:
                state = {"batches": self.done, "ranks": self._core.distributed.size}
                (directory / _PROGRESS_FILE).write_text(json.dumps(state))
            if self._context._uses_storage:
                shutil.copytree(self._context._storage_path, directory / self._rank_directory)


def _limited(rounds: int, max_batches: int | None) -> int:
    if max_batches is None:
        return rounds
    if not 0 < max_batches <= rounds:
        _log.warning(
            "max_batches is %d, and each rank has %d batches: all of them are processed", max_batches, rounds
        )
        return rounds
    return max_batches


def _join_launched_ranks() -> DistributedContext:
    if os.environ.get(USE_HOROVOD):
        hvd = import_horovod()
        hvd.init()
        return DistributedContext.from_horovod(hvd)
    if os.environ.get(USE_TORCH_DISTRIBUTED):
        return DistributedContext.from_torch_distributed()
    info = resolute.get_cluster_info()
    if info is not None and len(info.slot_ids) > 1:
        raise ValueError(
            "this trial has several slots: start the script with determined.launch.torch_distributed"
        )
    return DummyDistributedContext()
