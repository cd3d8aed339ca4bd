"""Creates the Core API for a process of a trial on a cluster."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
from pathlib import Path
from typing import Any

from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.object_stores.location import BucketStorage
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.contracts.run.shared_memory.movement import Movement
from resolute.core.checkpoint import CheckpointContext
from resolute.core.checkpoint.files.progress_log import watch_progress
from resolute.core.checkpoint.storage import DirectoryStorage, Storage
from resolute.core.context import Parts
from resolute.core.distributed import DistributedContext
from resolute.core.preempt import PreemptContext, PreemptMode
from resolute.core.profiler import ProfilerContext
from resolute.core.remote.alerts import RemoteAlerts
from resolute.core.remote.operations import RemoteOperations
from resolute.core.remote.presigned_urls import open_remote_store
from resolute.core.remote.registry import RemoteRegistry, parse_connection_storage, storage_of, to_message
from resolute.core.remote.session import Session
from resolute.core.remote.trial_record import RemoteTrialRecord, UnmanagedTrialRecord
from resolute.core.reporting.strictness import Strictness
from resolute.core.reporting.train import TrainContext
from resolute.core.searcher import (
    DummySearcherContext,
    LocalOperations,
    SearcherContext,
    SearcherContextMissing,
    max_length_of,
    units_of,
)
from resolute.core.system_metrics import MachineSampler
from resolute.core.tensorboard import AutoTensorboard, ManualTensorboard, Tensorboard, TensorboardMode
from resolute.core.tensorboard.destinations import DirectoryDestination
from resolute.core.tensorboard.event_media import EventMedia
from resolute.core.tensorboard.event_thread import EventThread
from resolute.core.tensorboard.events import EventFile, SpoolTail
from resolute.core.tensorboard.file_copier import FileCopier
from resolute.errors import FailedPreconditionError
from resolute.info import ClusterInfo
from resolute.runtime.connection import Connection
from resolute.runtime.experiment_config import ExperimentConfig
from resolute.spool.omissions import LEFT_OUT_SUFFIX
from resolute.spool.report_writer import ReportWriter, limit_from_environment

_log = logging.getLogger("resolute.core")


def assemble(
    info: ClusterInfo,
    *,
    distributed: DistributedContext,
    checkpoint_storage: Storage | None,
    preempt_mode: PreemptMode,
    tensorboard_mode: TensorboardMode,
    strictness: Strictness = Strictness.WARN,
    run_directory: RunDirectory | None = None,
) -> Parts:
    """Makes the parts of a context.

    Args:
        info: What is known of the cluster.
        distributed: The other processes.
        checkpoint_storage: Where the script wants its checkpoints; None for where the experiment's lie.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.
        strictness: What becomes of a report that cannot be recorded.
        run_directory: Where the run lies; None to find it in the environment.

    Raises:
        FailedPreconditionError: The process was not started by a supervisor.
    """
    connection, run_directory = _run_environment(info, run_directory or RunDirectory.from_environment())
    session = open_session(info, connection)
    flags = Flags.create(run_directory.flags_file)
    movement = Movement(run_directory.movement, rank=distributed.rank)
    watch = watch_progress(movement.advance)
    reports = _open_reports(run_directory, rank=distributed.rank, strictness=strictness)
    storage = _storage(connection, wanted=checkpoint_storage)
    tensorboard = _tensorboard(info, distributed, storage=storage, reports=reports, mode=tensorboard_mode)
    make_record = UnmanagedTrialRecord if connection.unmanaged else RemoteTrialRecord
    if distributed.rank == 0:
        _note_ready(run_directory)
    record = make_record(
        session,
        run_directory=run_directory,
        movement=movement,
        flush=lambda: reports.flush(session.outage_timeout),
        length=1 if connection.time_driven else max_length_of(_search_config(info)) or 1,
    )
    return Parts(
        distributed=distributed,
        train=TrainContext(
            reporter=reports,
            record=record,
            tensorboard=tensorboard,
            rank=distributed.rank,
            confirms=strictness is Strictness.STRICT,
            reported=movement.step,
        ),
        checkpoint=CheckpointContext(
            distributed,
            store=open_remote_store(storage, session, watch=watch),
            registry=RemoteRegistry(session, storage=to_message(storage), watch=watch),
            flush=lambda: reports.flush(session.outage_timeout),
            committed=tensorboard.sync,
            watch=watch,
        ),
        searcher=_searcher(info, distributed, session=session, record=record, flags=flags),
        preempt=PreemptContext(distributed, preempt_mode, open_signal=lambda: flags, asked=movement.step),
        profiler=ProfilerContext(
            distributed, reporter=reports, agent=info.agent_id, open_sampler=MachineSampler
        ),
        tensorboard=tensorboard,
        raise_alert=RemoteAlerts(session).raise_alert,
        # What a script does after the end of its context says nothing any more.
        closers=(reports.close, session.close, movement.begin_phase),
    )


def _open_reports(run: RunDirectory, *, rank: int, strictness: Strictness) -> ReportWriter:
    source = f"rank{rank}"
    return ReportWriter(
        run.spool,
        name=source,
        limit=limit_from_environment(),
        omissions=strictness.omissions(run.spool / f"{source}{LEFT_OUT_SUFFIX}"),
    )


def _storage(connection: Connection, *, wanted: Storage | None) -> Storage:
    if isinstance(wanted, BucketStorage) and wanted.has_secrets:
        _log.warning(
            "the credentials in checkpoint_storage are not used on a cluster, "
            "whose checkpoints service has its own"
        )
    return wanted or storage_of(parse_connection_storage(connection.storage))


def _note_ready(run: RunDirectory) -> None:
    try:
        run.write_ready(SYSTEM_CLOCK.time())
    except OSError as failure:  # such as a full disk: no training fails for a time
        _log.info("the time of the initialization was not recorded: %s", failure)


def _run_environment(
    info: ClusterInfo, run_directory: RunDirectory | None
) -> tuple[Connection, RunDirectory]:
    if info.connection is None or run_directory is None:
        raise FailedPreconditionError(
            "this process looks like part of a trial but does not say how to reach the cluster: "
            "RESOLUTE_RUN_DIR or the key resolute of cluster.json is missing; start it through an experiment"
        )
    return info.connection, run_directory


def open_session(info: ClusterInfo, connection: Connection) -> Session:
    """Opens the services to a process of a trial."""
    return Session(
        connection,
        tls=_tls(info, connection),
        fallback_token=info.session_token,
    )


def _tls(info: ClusterInfo, connection: Connection) -> ClientTls | None:
    if info.master_cert_file:
        return ClientTls.read(Path(info.master_cert_file), server_name=info.master_cert_name or "")
    return ClientTls() if connection.tls else None


def _searcher(
    info: ClusterInfo,
    distributed: DistributedContext,
    *,
    session: Session,
    record: RemoteTrialRecord,
    flags: Flags,
) -> SearcherContext:
    if session.connection.unmanaged:
        return DummySearcherContext(distributed)
    config = _search_config(info)
    if not session.connection.time_driven:
        return SearcherContext(
            distributed, source=RemoteOperations(session, signal=flags), units=units_of(config)
        )
    length = max_length_of(config)
    if length is None:
        return SearcherContextMissing()

    def report_progress(reached: float) -> None:
        record.report_progress(min(max(reached / length, 0.0), 1.0) if length else 1.0)

    source = LocalOperations([length], report_progress=report_progress)
    return SearcherContext(distributed, source=source, units=units_of(config))


def _search_config(info: ClusterInfo) -> dict[str, Any]:
    return ExperimentConfig(info.trial._config).get_searcher()  # noqa: SLF001 - the documented private name


def _tensorboard(
    info: ClusterInfo,
    distributed: DistributedContext,
    *,
    storage: Storage,
    reports: ReportWriter,
    mode: TensorboardMode,
) -> Tensorboard:
    path = Path(tempfile.gettempdir()) / f"tensorboard-{info.allocation_id}-{distributed.rank}"
    chief = distributed.rank == 0 and importlib.util.find_spec("tensorboard") is not None
    media = EventMedia(reports.log_media, omissions=reports.omissions) if chief else None
    copier = FileCopier(_tensorboard_destination(info, storage), media=media)
    if TensorboardMode(mode) is TensorboardMode.MANUAL:
        return ManualTensorboard(path, copier, rank=distributed.rank)
    events = None
    if chief:
        tail = SpoolTail(reports.path.parent, reports.pattern)
        events = EventThread(tail, EventFile(path), copy=lambda: copier.copy(path))
    return AutoTensorboard(path, copier, events=events)


def _tensorboard_destination(info: ClusterInfo, storage: Storage) -> DirectoryDestination | None:
    """Returns where events are beside the checkpoints; None for storages that take no such files."""
    if not isinstance(storage, DirectoryStorage):
        return None
    trial = info.trial
    below = f"tensorboard/experiment/{trial.experiment_id}/trial/{trial.trial_id}"
    return DirectoryDestination(storage.path / info.cluster_id / below)
