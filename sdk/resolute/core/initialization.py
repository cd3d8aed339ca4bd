"""``core.init``: chooses the parts of the Core API, on a cluster and off."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import resolute
from resolute.core.checkpoint import DummyCheckpointContext
from resolute.core.checkpoint.storage import DirectoryStorage, default_storage, open_store, parse_storage
from resolute.core.context import Context, Parts
from resolute.core.distributed import DistributedContext, DummyDistributedContext
from resolute.core.preempt import DummyPreemptContext, PreemptMode
from resolute.core.profiler import DummyProfilerContext
from resolute.core.reporting.offline import OFFLINE_DIRECTORY, record_offline
from resolute.core.reporting.reporter import LogReporter
from resolute.core.reporting.strictness import Strictness
from resolute.core.reporting.train import DummyTrainContext, TrainContext
from resolute.core.searcher import (
    DummySearcherContext,
    LocalOperations,
    SearcherContext,
    SearcherContextMissing,
    max_length_of,
    units_of,
)
from resolute.core.tensorboard import LocalTensorboard, TensorboardMode
from resolute.info import TRIAL, ClusterInfo, info_directory
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.runtime.local_task import LocalTask
from resolute.transfer.cache import FileCache

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"
_log = logging.getLogger("resolute.core")


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    offline_dir: str | os.PathLike[str] | None = None,
    strictness: Strictness = Strictness.WARN,
    hparams: Mapping[str, Any] | None = None,
) -> Context:
    """Makes the context of a training script; use it in a ``with`` statement.

    Off cluster every part works without a server: reports are logged, checkpoints go to a directory, there
    is no preemption, and the search asks for one operation of length 1. With an offline directory, reports
    and metadata are recorded there too, and ``resolute sync`` sends them to a cluster later.

    So does a trial that ``resolute reproduce`` runs again, with the hyperparameters, the seed and the
    operations that it had on its cluster; its checkpoints go to the directory of the reproduction.

    Args:
        distributed: The other processes; needed as soon as the trial has more than one slot.
        checkpoint_storage: Where checkpoints go: a path, ``file://...``, ``s3://bucket/prefix`` or
            ``gs://bucket/prefix``; or a mapping like the section ``checkpoint_storage`` of a config. Default:
            what the experiment's config says; off cluster a directory of the user's.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.
        offline_dir: Off cluster, the directory that gets a directory for this run. Default: what
            RESOLUTE_OFFLINE_DIR says; without either nothing is recorded. On cluster it has no effect.
        strictness: What becomes of a report that cannot be recorded. ``reports: strict`` in the experiment's
            config asks for more than this.
        hparams: What ``context.hparams`` is off cluster; on a cluster those of the trial replace them, one by
            one.

    Raises:
        ValueError: The trial has several slots and there is no ``distributed``; or the storage is malformed.
        TypeError: The storage is neither text nor a mapping.
        FailedPreconditionError: Off cluster, the library for the store is not installed.

    Examples:
        >>> from resolute import core
        >>> with core.init(checkpoint_storage="init-example") as context:
        ...     context.train.report_training_metrics(steps_completed=1, metrics={"loss": 0.5})
        ...     print(context.info is None, context.distributed.size)
        True 1
    """
    info = resolute.get_cluster_info()
    if info is None:
        parts = _parts_off_cluster(
            distributed or DummyDistributedContext(), checkpoint_storage, offline_dir, strictness
        )
        return Context(parts, hparams=hparams)
    if distributed is None:
        if len(info.container_addrs) > 1 or len(info.slot_ids) > 1:
            raise ValueError("you must provide a valid DistributedContext for a multi-slot task")
        distributed = DummyDistributedContext()
    if info.task_type != TRIAL:
        parts = _local_parts(distributed, checkpoint_storage, strictness=strictness)
        return Context(parts, info=info, hparams=hparams)
    config = info.trial._config  # noqa: SLF001 - the documented private name
    strictness = Strictness.of_config(config, least=strictness)
    if info.local is not None:
        parts = _parts_of_local_task(info, info.local, distributed, strictness)
        return Context(parts, info=info, hparams=hparams)
    disable_grpc_fork_support()
    from resolute.core.remote.assembly import assemble

    parts = assemble(
        info,
        distributed=distributed,
        checkpoint_storage=None if checkpoint_storage is None else parse_storage(checkpoint_storage),
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
        strictness=strictness,
    )
    return Context(parts, info=info, hparams=hparams)


def disable_grpc_fork_support() -> None:
    """Switches off gRPC's own support for forks, which makes workers hang; must come before its import."""
    if os.environ.setdefault(_FORK_SUPPORT, "0").lower() not in {"0", "false"}:
        _log.warning("%s is set: forked data loader workers may hang; unset it", _FORK_SUPPORT)


def _parts_off_cluster(
    distributed: DistributedContext,
    checkpoint_storage: str | Mapping[str, Any] | None,
    offline_dir: str | os.PathLike[str] | None,
    strictness: Strictness,
) -> Parts:
    parts = _local_parts(distributed, checkpoint_storage, strictness=strictness)
    directory = os.fspath(offline_dir or os.environ.get(OFFLINE_DIRECTORY, ""))
    if directory:
        recorder = record_offline(Path(directory), distributed, strictness.omissions())
        train = TrainContext(
            reporter=recorder.reporter,
            record=recorder.record,
            tensorboard=parts.tensorboard,
            rank=distributed.rank,
        )
        parts = replace(parts, train=train, closers=(recorder.reporter.close,))
    return parts


def _parts_of_local_task(
    info: ClusterInfo, task: LocalTask, distributed: DistributedContext, strictness: Strictness
) -> Parts:
    # Never where the script wants its checkpoints: those of the trial on its cluster are there.
    directory = os.path.normpath(info_directory() / task.checkpoints)
    storage = {"type": "directory", "container_path": directory}
    parts = _local_parts(distributed, storage, strictness=strictness)
    searcher = ExperimentConfig(info.trial._config).get_searcher()  # noqa: SLF001 - the documented private name
    lengths: Sequence[int] = task.lengths
    if not lengths:  # validation reports drove the search
        length = max_length_of(searcher)
        if length is None:
            return replace(parts, searcher=SearcherContextMissing())
        lengths = [length]
    source = LocalOperations(lengths)
    return replace(parts, searcher=SearcherContext(distributed, source=source, units=units_of(searcher)))


def _dummy_init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
) -> Context:
    """Makes a context that needs no server."""
    return Context(_local_parts(distributed or DummyDistributedContext(), checkpoint_storage, preempt_mode))


def _local_parts(
    distributed: DistributedContext,
    checkpoint_storage: str | Mapping[str, Any] | None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    *,
    strictness: Strictness = Strictness.WARN,
) -> Parts:
    storage = default_storage() if checkpoint_storage is None else parse_storage(checkpoint_storage)
    # Files of a directory are read where they lie.
    cache = None if isinstance(storage, DirectoryStorage) else FileCache.from_environment()
    tensorboard = LocalTensorboard()
    reporter = LogReporter(strictness.omissions())
    return Parts(
        distributed=distributed,
        train=DummyTrainContext(tensorboard, reporter=reporter, rank=distributed.rank),
        checkpoint=DummyCheckpointContext(distributed, open_store(storage), cache=cache),
        searcher=DummySearcherContext(distributed),
        preempt=DummyPreemptContext(distributed, preempt_mode),
        profiler=DummyProfilerContext(),
        tensorboard=tensorboard,
        closers=(reporter.close,),
    )
