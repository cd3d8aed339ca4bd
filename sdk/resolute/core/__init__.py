"""The Core API: the platform's features for any training script."""

from resolute.core.checkpoint import CheckpointContext, DownloadMode, DummyCheckpointContext
from resolute.core.context import Context
from resolute.core.distributed import DistributedContext, DummyDistributedContext
from resolute.core.experimental import ExperimentalCoreContext
from resolute.core.initialization import _dummy_init, init
from resolute.core.preempt import DummyPreemptContext, PreemptContext, PreemptMode
from resolute.core.profiler import DummyProfilerContext, ProfilerContext
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.core.reporting.strictness import Strictness
from resolute.core.reporting.train import DummyTrainContext, TrainContext
from resolute.core.searcher import (
    DummySearcherContext,
    DummySearcherOperation,
    SearcherContext,
    SearcherContextMissing,
    SearcherMode,
    SearcherOperation,
    Unit,
)
from resolute.core.tensorboard import TensorboardMode

__all__ = [
    "CheckpointContext",
    "Context",
    "DistributedContext",
    "DownloadMode",
    "DummyCheckpointContext",
    "DummyDistributedContext",
    "DummyPreemptContext",
    "DummyProfilerContext",
    "DummySearcherContext",
    "DummySearcherOperation",
    "DummyTrainContext",
    "EarlyExitReason",
    "ExperimentalCoreContext",
    "PreemptContext",
    "PreemptMode",
    "ProfilerContext",
    "SearcherContext",
    "SearcherContextMissing",
    "SearcherMode",
    "SearcherOperation",
    "Strictness",
    "TensorboardMode",
    "TrainContext",
    "Unit",
    "_dummy_init",
    "init",
]
