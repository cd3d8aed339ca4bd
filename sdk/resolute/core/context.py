"""All parts of the Core API in one object, and how it is made."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import resolute
from resolute.core.checkpoint import CheckpointContext, DummyCheckpointContext
from resolute.core.checkpoint.storage import DirectoryStorage, default_storage, open_store, parse_storage
from resolute.core.distributed import DistributedContext, DummyDistributedContext
from resolute.core.experimental import ExperimentalCoreContext
from resolute.core.preempt import DummyPreemptContext, PreemptContext, PreemptMode
from resolute.core.profiler import DummyProfilerContext, ProfilerContext
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.core.reporting.offline import OFFLINE_DIRECTORY, record_offline
from resolute.core.reporting.train import DummyTrainContext, TrainContext
from resolute.core.searcher import DummySearcherContext, SearcherContext
from resolute.core.stack_dump import StackDump
from resolute.core.tensorboard import LocalTensorboard, Tensorboard, TensorboardMode
from resolute.info import TRIAL, ClusterInfo
from resolute.transfer.cache import FileCache
from resolute.trial_errors import InvalidHP

if TYPE_CHECKING:
    from typing_extensions import Self

_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"
_log = logging.getLogger("resolute.core")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a context is made of, chosen once by where the process runs."""

    distributed: DistributedContext
    train: TrainContext
    checkpoint: CheckpointContext
    searcher: SearcherContext
    preempt: PreemptContext
    profiler: ProfilerContext | DummyProfilerContext
    tensorboard: Tensorboard = field(default_factory=LocalTensorboard)
    closers: tuple[Callable[[], None], ...] = ()
    """Called at the end, in order, each even if one before it fails."""


class Context:
    """Everything that a training script needs of the platform. Make it with ``resolute.core.init``.

    Attributes:
        checkpoint: Writes and reads checkpoints.
        distributed: The other processes of the trial.
        preempt: Whether to stop.
        searcher: How long to train.
        train: Metrics and status.
        profiler: Samples of the machine.
        info: What is known of the cluster; None off cluster.
        experimental: What may still change.
    """

    def __init__(self, parts: Parts, *, info: ClusterInfo | None = None) -> None:
        self._parts = parts
        self._owner = os.getpid()
        self._stack_dump = StackDump()
        self.info = info
        self.checkpoint = parts.checkpoint
        self.distributed = parts.distributed
        self.preempt = parts.preempt
        self.profiler = parts.profiler
        self.searcher = parts.searcher
        self.train = parts.train
        self.experimental = ExperimentalCoreContext()

    def start(self) -> None:
        """Begins to watch for preemption, and whatever else goes on in the background."""
        self._stack_dump.install()
        self.preempt.start()
        self._parts.tensorboard.start()

    def close(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Ends what ``start`` began. If the hyperparameters were refused, the process then exits with 0.

        Args:
            exc_type: Class of the error that ends the script, if one does.
            exc_val: The error.
            exc_tb: Its traceback.
        """
        if os.getpid() != self._owner:
            # A forked child that unwinds the stack of its parent: what is open belongs to the parent.
            return
        invalid_hp = exc_type is not None and issubclass(exc_type, InvalidHP)
        if invalid_hp:
            _log.info("the hyperparameters were refused: %s", exc_val)
            self.train.report_early_exit(EarlyExitReason.INVALID_HP)
        self._close_all()
        if invalid_hp:
            sys.exit(0)

    def alert(self, title: str | None = None, description: str | None = None, level: str = "info") -> None:
        """Calls people's attention, by a line in the trial's log.

        Args:
            title: A few words.
            description: More words.
            level: ``debug``, ``info``, ``warn`` or ``error``.

        Raises:
            ValueError: The level is none of these.
        """
        number = {
            "debug": logging.DEBUG,
            "info": logging.INFO,
            "warn": logging.WARNING,
            "error": logging.ERROR,
        }
        if level not in number:
            raise ValueError(f"level is {level!r}; {', '.join(number)} were expected")
        _log.log(number[level], "alert: %s", ": ".join(filter(None, (title, description))))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.close(exc_type, exc_val, exc_tb)

    def _close_all(self) -> None:
        self._stack_dump.remove()
        steps: tuple[Callable[[], None], ...] = (
            # What it sends needs everything else.
            self.checkpoint.wait,
            self.preempt.close,
            self.profiler.close,
            self._parts.tensorboard.close,
            self.distributed.close,
            *self._parts.closers,
        )
        # Each step runs even if one before it fails; the failures are raised once everything was closed.
        with contextlib.ExitStack() as stack:
            for step in reversed(steps):
                stack.callback(step)


def init(
    *,
    distributed: DistributedContext | None = None,
    checkpoint_storage: str | Mapping[str, Any] | None = None,
    preempt_mode: PreemptMode = PreemptMode.WorkersAskChief,
    tensorboard_mode: TensorboardMode = TensorboardMode.AUTO,
    offline_dir: str | os.PathLike[str] | None = None,
) -> Context:
    """Makes the context of a training script; use it in a ``with`` statement.

    Off cluster every part works without a server: reports are logged, checkpoints go to a directory, nobody
    preempts, and the search asks for one operation of length 1. With an offline directory, reports and
    metadata are recorded there too, and ``resolute sync`` sends them to a cluster later.

    Args:
        distributed: The other processes; needed as soon as the trial has more than one slot.
        checkpoint_storage: Where checkpoints go: a path, ``file://...``, ``s3://bucket/prefix`` or
            ``gs://bucket/prefix``; or a mapping like the section ``checkpoint_storage`` of a config. Default:
            what the experiment's config says; off cluster a directory of the user's.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.
        offline_dir: Off cluster, the directory that gets a directory for this run. Default: what
            RESOLUTE_OFFLINE_DIR says; without either nothing is recorded. On cluster it has no effect.

    Raises:
        ValueError: The trial has several slots and there is no ``distributed``; or the storage is malformed.
        TypeError: The storage is neither text nor a mapping.
        FailedPreconditionError: Off cluster, the library for the store is not installed.
    """
    info = resolute.get_cluster_info()
    if info is None:
        return _init_off_cluster(distributed or DummyDistributedContext(), checkpoint_storage, offline_dir)
    if distributed is None:
        if len(info.container_addrs) > 1 or len(info.slot_ids) > 1:
            raise ValueError("you must provide a valid DistributedContext for a multi-slot task")
        distributed = DummyDistributedContext()
    if info.task_type != TRIAL:
        return Context(_local_parts(distributed, checkpoint_storage), info=info)
    disable_grpc_fork_support()
    from resolute.core.remote.assembly import assemble

    parts = assemble(
        info,
        distributed=distributed,
        checkpoint_storage=None if checkpoint_storage is None else parse_storage(checkpoint_storage),
        preempt_mode=preempt_mode,
        tensorboard_mode=tensorboard_mode,
    )
    return Context(parts, info=info)


def disable_grpc_fork_support() -> None:
    """Switches off gRPC's own support for forks, which makes workers hang; must come before its import."""
    if os.environ.setdefault(_FORK_SUPPORT, "0").lower() not in {"0", "false"}:
        _log.warning("%s is set: forked data loader workers may hang; unset it", _FORK_SUPPORT)


def _init_off_cluster(
    distributed: DistributedContext,
    checkpoint_storage: str | Mapping[str, Any] | None,
    offline_dir: str | os.PathLike[str] | None,
) -> Context:
    parts = _local_parts(distributed, checkpoint_storage)
    directory = os.fspath(offline_dir or os.environ.get(OFFLINE_DIRECTORY, ""))
    if directory:
        recorder = record_offline(Path(directory), distributed)
        train = TrainContext(
            reporter=recorder.reporter, record=recorder.record, tensorboard=parts.tensorboard
        )
        parts = replace(parts, train=train, closers=(recorder.reporter.close,))
    return Context(parts)


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
) -> Parts:
    storage = default_storage() if checkpoint_storage is None else parse_storage(checkpoint_storage)
    # Files of a directory are read where they lie.
    cache = None if isinstance(storage, DirectoryStorage) else FileCache.from_environment()
    tensorboard = LocalTensorboard()
    return Parts(
        distributed=distributed,
        train=DummyTrainContext(tensorboard),
        checkpoint=DummyCheckpointContext(distributed, open_store(storage), cache=cache),
        searcher=DummySearcherContext(distributed),
        preempt=DummyPreemptContext(distributed, preempt_mode),
        profiler=DummyProfilerContext(),
        tensorboard=tensorboard,
    )
