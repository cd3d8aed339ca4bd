"""The context of a run outside of the cluster."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from resolute.client import Client
from resolute.client.connection.endpoint import NoClusterError
from resolute.client.connection.session import Session
from resolute.client.remote.trials import StartedRun
from resolute.client.schema.states import CheckpointState
from resolute.client.services import Services
from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.contracts.files.atomic_files import write_atomically
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.core.checkpoint.storage import Storage
from resolute.core.context import Context, Parts
from resolute.core.distributed import DistributedContext
from resolute.core.preempt import PreemptMode
from resolute.core.remote.assembly import assemble
from resolute.core.reporting.offline import OFFLINE_DIRECTORY
from resolute.core.reporting.strictness import Strictness
from resolute.core.tensorboard import TensorboardMode
from resolute.core.unmanaged.config import Config
from resolute.core.unmanaged.output_tee import OutputTee
from resolute.core.unmanaged.recording import begin_recording, recording_parts
from resolute.core.unmanaged.script_exit import ScriptExit
from resolute.core.unmanaged.sidecar import SidecarConfig
from resolute.core.unmanaged.sync import sync_recorded
from resolute.errors import UnavailableError
from resolute.info import TRIAL, ClusterInfo, TrialInfo
from resolute.runtime.connection import Connection
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity

_OUTAGE_TIMEOUT = 3600.0
_RECORDED_TIMEOUT = 60.0
"""Seconds that a script waits at most for the runs that were recorded before it."""
_log = logging.getLogger("resolute.core")


@dataclass(frozen=True)
class _Begun:
    """The start of the run at the cluster, which the chief sends to every process of the trial."""

    info: ClusterInfo
    directory: Path


class UnmanagedContext(Context):
    """A context that records how its run ended."""

    def __init__(self, parts: Parts, *, info: ClusterInfo, ending: ScriptExit | None) -> None:
        super().__init__(parts, info=info)
        self._script_exit = ending

    def start(self) -> None:
        """Begins to watch, also for how the script ends."""
        super().start()
        if self._script_exit is not None:
            self._script_exit.hook.install()

    def close(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Ends what ``start`` began, and waits a while until what was reported has arrived."""
        if os.getpid() != self._owner:
            return
        try:
            super().close(exc_type, exc_val, exc_tb)
        finally:
            if self._script_exit is not None:
                if exc_val is not None:
                    self._script_exit.hook.record_error(exc_val)
                self._script_exit.finish()


def begin(
    *,
    config: Config,
    client: Client | None,
    run_id: str = "",
    distributed: DistributedContext,
    checkpoint_storage: Storage | None,
    preempt_mode: PreemptMode,
    tensorboard_mode: TensorboardMode,
) -> Context:
    """Begins a run outside of the cluster; every process of the trial calls it.

    With no cluster in reach the run is recorded, for later. A ``checkpoint_storage`` has no effect then: its
    checkpoints are sent to where the experiment keeps them.

    Args:
        config: Describes its experiment and its trial.
        client: The cluster; None for the one that the environment names.
        run_id: UUID of a run that was announced before; empty for a new one.
        distributed: The other processes.
        checkpoint_storage: Where the script wants its checkpoints; None for where the experiment's lie.
        preempt_mode: Which processes ask whether to stop.
        tensorboard_mode: Who writes and copies TensorBoard files.

    Raises:
        ResoluteError: The cluster does not take the run.
    """
    ending: ScriptExit | None = None
    begun: _Begun | None = None
    if distributed.rank == 0:
        begun, ending = _begin(config, client, run_id or str(uuid.uuid4()))
    begun = distributed.broadcast(begun)
    assert begun is not None
    run = RunDirectory(begun.directory)
    strictness = Strictness.of_config(config.fields(), least=Strictness.WARN)
    if begun.info.connection is None:
        parts = recording_parts(
            begun.directory,
            begun.info,
            distributed=distributed,
            preempt_mode=preempt_mode,
            omissions=strictness.omissions(),
        )
    else:
        parts = assemble(
            begun.info,
            distributed=distributed,
            checkpoint_storage=checkpoint_storage,
            preempt_mode=preempt_mode,
            tensorboard_mode=tensorboard_mode,
            strictness=strictness,
            run_directory=run,
        )
    output = OutputTee(run.spool, rank=distributed.rank, size=distributed.size)
    output.install()
    parts = replace(parts, closers=(output.close, *parts.closers))
    return UnmanagedContext(parts, info=begun.info, ending=ending)


def _begin(config: Config, client: Client | None, run_id: str) -> tuple[_Begun, ScriptExit]:
    run = OfflineRun.create(
        _parent_directory(),
        run_id=run_id,
        name=config.name or Path(sys.argv[0]).name or "unmanaged",
        now=SYSTEM_CLOCK.time(),
        hparams=dict(config.hparams or {}),
        config=config.fields(),
        external_experiment_id=config.external_experiment_id or "",
        external_trial_id=config.external_trial_id or "",
    )
    address = ""
    try:
        with _services(client) as services:
            address = services.session.endpoint.address
            return _begin_with(services, run)
    except (NoClusterError, UnavailableError) as failure:
        return _record(run, address=address, reason=f"no cluster is in reach ({failure})")


@contextlib.contextmanager
def _services(client: Client | None) -> Iterator[Services]:
    if client is not None:
        yield client.services
        return
    with Session.find() as session:
        yield Services(session)


def _record(run: OfflineRun, *, address: str, reason: str) -> tuple[_Begun, ScriptExit]:
    files = RunDirectory(run.directory)
    # It is there if the run had begun on the cluster before that was out of reach.
    files.token_file.unlink(missing_ok=True)
    recording = begin_recording(run, address=address)
    _log.warning(
        "%s; this run is recorded in %s, and is sent by the next script that "
        "reaches the cluster, or by `resolute sync`",
        reason,
        run.directory,
    )
    return _Begun(recording.info, run.directory), ScriptExit(files, None, lock=recording.lock)


def _begin_with(services: Services, run: OfflineRun) -> tuple[_Begun, ScriptExit]:
    # Before this run begins: it may continue a trial that one of them trained.
    left = sync_recorded(services, run.directory.parent, timeout=_RECORDED_TIMEOUT)
    if run.trial is not None and run.trial in left:
        # The cluster numbers the runs of a trial as they begin.
        return _record(
            run,
            address=services.session.endpoint.address,
            reason=f"the earlier run of its trial in {left[run.trial]} has not arrived yet",
        )
    begun = services.trials.begin(run)
    files = RunDirectory(run.directory)
    files.prepare()
    write_atomically(files.token_file, begun.token)
    info = _info(services, begun, files, run)
    tls = services.session.endpoint.tls
    trainer = ProcessIdentity.of(os.getpid())
    SidecarConfig(
        address=services.session.endpoint.address,
        tls=None if tls is None else tls.to_json(),
        identity=_identity(begun),
        trainer={} if trainer is None else trainer.to_json(),
        outage_timeout=_OUTAGE_TIMEOUT,
    ).write(files)
    return _Begun(info, run.directory), ScriptExit(files, _start_sidecar(files))


def _identity(begun: StartedRun) -> dict[str, Any]:
    identity = RunIdentity(
        begun.trial.uuid,
        begun.run,
        begun.trial.experiment_uuid,
        searcher_metric=begun.searcher_metric,
        smaller_is_better=begun.smaller_is_better,
        agent=os.uname().nodename,
        storage=begun.storage,
    )
    return {name: getattr(identity, name) for name in RunIdentity.__slots__}


def _info(services: Services, begun: StartedRun, files: RunDirectory, run: OfflineRun) -> ClusterInfo:
    trial, endpoint = begun.trial, services.session.endpoint
    certificate = files.path / "master.pem"
    authority = None if endpoint.tls is None else endpoint.tls.authority
    if authority is not None:
        write_atomically(certificate, authority)
    latest = next(
        (
            record
            for record in services.checkpoints.of_trial(trial.uuid)
            if record.state is CheckpointState.COMPLETED
        ),
        None,
    )
    return ClusterInfo(
        master_url=endpoint.master_url,
        cluster_id=begun.cluster_id,
        agent_id=os.uname().nodename,
        slot_ids=[],
        task_id=trial.uuid,
        allocation_id=f"{trial.uuid}.{begun.run}",
        session_token="",
        task_type=TRIAL,
        master_cert_name=(endpoint.tls.server_name or None) if endpoint.tls else None,
        master_cert_file=None if authority is None else str(certificate),
        latest_checkpoint=None if latest is None else latest.uuid,
        trial_info=TrialInfo(
            trial_id=trial.id,
            experiment_id=trial.experiment_id,
            trial_seed=0,
            hparams=dict(trial.hparams),
            config=dict(run.config),
            steps_completed=0 if latest is None else latest.steps_completed,
            trial_run_id=begun.run,
        ),
        connection=Connection(
            address=endpoint.address,
            experiment_id=trial.experiment_uuid,
            trial_id=trial.uuid,
            run=begun.run,
            token_path=str(files.token_file),
            tls=endpoint.tls is not None,
            storage=begun.storage,
            searcher_metric=begun.searcher_metric,
            smaller_is_better=begun.smaller_is_better,
            unmanaged=True,
        ),
    )


def _start_sidecar(files: RunDirectory) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C ends the script and not what it has reported.
    with (files.path / "sidecar.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "resolute.core.unmanaged.sidecar", str(files.path)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _parent_directory() -> Path:
    chosen = os.environ.get(OFFLINE_DIRECTORY, "")
    if chosen:
        return Path(chosen).expanduser().absolute()
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().absolute() / "resolute" / "unmanaged"
