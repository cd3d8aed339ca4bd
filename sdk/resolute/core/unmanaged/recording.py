"""Records a run outside of the cluster while no cluster is reachable, to be sent later.

The run's directory has the format of a run with a sidecar. Every process of the script holds a shared lock on
it, so that a run is not sent while it is running. ``recorded.json`` marks it and names the unreachable
cluster.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from resolute.contracts.files.atomic_files import read_json, write_json
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.early_exit import EarlyExit
from resolute.contracts.run.lock import RunLock
from resolute.core.checkpoint import CheckpointContext
from resolute.core.context import Parts
from resolute.core.distributed import DistributedContext
from resolute.core.preempt import DummyPreemptContext, PreemptMode
from resolute.core.profiler import ProfilerContext
from resolute.core.reporting.early_exit import EarlyExitReason
from resolute.core.reporting.offline import FileReporter, OfflineTrialRecord
from resolute.core.reporting.train import TrainContext
from resolute.core.reporting.trial_record import LocalTrialRecord
from resolute.core.searcher import DummySearcherContext
from resolute.core.system_metrics import MachineSampler
from resolute.core.tensorboard import LocalTensorboard
from resolute.core.unmanaged.recorded_checkpoints import RecordingRegistry, latest_of_trial
from resolute.errors import DataLossError
from resolute.info import TRIAL, ClusterInfo, TrialInfo
from resolute.runtime.offline_run import OfflineRun, load_runs
from resolute.spool.omissions import Omissions

_MARK = "recorded.json"
_log = logging.getLogger("resolute.core")


@dataclass(frozen=True, slots=True)
class Recording:
    """A run that is being recorded."""

    info: ClusterInfo
    """What the script receives; the numbers of experiment and trial are 0 until a cluster gives them."""
    lock: RunLock
    """Held by the chief until the end of the run is written down."""


def begin_recording(run: OfflineRun, *, address: str) -> Recording:
    """Begins to record; the chief calls it.

    Args:
        run: The run.
        address: The cluster that is out of reach; empty if none is known.
    """
    files = RunDirectory(run.directory)
    files.prepare()
    lock = RunLock.acquire(run.lock_file)
    lock.share()
    latest = latest_of_trial(recorded_runs(run.directory.parent), run)
    # Only now may others see it: where the mark is, the lock is too.
    write_json(run.directory / _MARK, {"address": address}, sync=True)
    checkpoint_id, steps = latest or (None, 0)
    info = ClusterInfo(
        master_url="",
        cluster_id="",
        agent_id=os.uname().nodename,
        slot_ids=[],
        task_id=run.run_id,
        allocation_id=run.run_id,
        session_token="",
        task_type=TRIAL,
        latest_checkpoint=checkpoint_id,
        trial_info=TrialInfo(
            trial_id=0,
            experiment_id=0,
            trial_seed=0,
            hparams=dict(run.hparams),
            config=dict(run.config),
            steps_completed=steps,
            trial_run_id=1,
        ),
    )
    return Recording(info, lock)


def is_recorded(directory: Path) -> bool:
    """Returns whether a run was recorded by a script that found no cluster."""
    return (directory / _MARK).exists()


def unmark(directory: Path) -> None:
    """Leaves a run for `resolute sync`: scripts that start no longer send it."""
    (directory / _MARK).unlink(missing_ok=True)


def recorded_runs(parent: Path, *, address: str | None = None) -> list[OfflineRun]:
    """Finds the runs that were recorded with no cluster in reach, oldest first; warns of unreadable ones.

    Args:
        parent: Where runs lie.
        address: Leaves out those that were meant for a cluster at another address; None finds all.
    """
    directories = []
    for mark in parent.glob(f"*/{_MARK}"):
        try:
            meant_for = (read_json(mark) or {}).get("address", "")
        except (OSError, DataLossError) as failure:
            _warn_of_unreadable(failure)
            continue
        if address is None or meant_for in {"", address}:
            directories.append(mark.parent)
    return load_runs(directories, unreadable=_warn_of_unreadable)


def _warn_of_unreadable(failure: Exception) -> None:
    if isinstance(failure.__cause__, FileNotFoundError):
        # Sent and removed by another process meanwhile.
        return
    _log.warning("a recorded run cannot be read, and is left where it is: %s", failure)


class _RecordedTrial(OfflineTrialRecord):
    """The record of a trial that keeps metadata and early exit until the end of the run."""

    def report_early_exit(self, reason: EarlyExitReason, message: str) -> None:
        """Leaves the reason where the end of the run is written down."""
        RunDirectory(self._run.directory).write_early_exit(EarlyExit(reason.name, message))


def recording_parts(
    directory: Path,
    info: ClusterInfo,
    *,
    distributed: DistributedContext,
    preempt_mode: PreemptMode,
    omissions: Omissions | None = None,
) -> Parts:
    """Makes the parts of a context that records; every process of the trial calls it.

    The run is not sent until each of them has closed its context or ended.

    Args:
        directory: The run's directory.
        info: What the script receives.
        distributed: The other processes; they must see the same directory.
        preempt_mode: Which processes ask whether to stop.
        omissions: Receives what cannot be recorded of reports; it is counted and logged by default.

    Raises:
        ConflictError: The chief has ended, and the run is being sent.
    """
    lock = RunLock.acquire(RunDirectory(directory).lock_file, shared=True)
    reporter = FileReporter.of_rank(directory, distributed.rank, omissions)
    record = _RecordedTrial(OfflineRun.load(directory)) if distributed.rank == 0 else LocalTrialRecord()
    tensorboard = LocalTensorboard()
    registry = RecordingRegistry(directory)
    return Parts(
        distributed=distributed,
        train=TrainContext(reporter=reporter, record=record, tensorboard=tensorboard, rank=distributed.rank),
        checkpoint=CheckpointContext(distributed, store=registry.store, registry=registry),
        searcher=DummySearcherContext(distributed),
        preempt=DummyPreemptContext(distributed, preempt_mode),
        profiler=ProfilerContext(
            distributed, reporter=reporter, agent=info.agent_id, open_sampler=MachineSampler
        ),
        tensorboard=tensorboard,
        closers=(reporter.close, lock.release),
    )
