"""The sidecar process of an unmanaged run, which sends its recorded reports, and heartbeats.

It is started as ``python -m resolute.core.unmanaged.sidecar DIRECTORY``. It ends once the script has ended
and everything has arrived. Reports that have not arrived within its timeout are kept for ``resolute sync``.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from resolute.client.connection.endpoint import Endpoint
from resolute.client.connection.session import Session
from resolute.client.remote.trials import Trials
from resolute.contracts.calls.tls import ClientTls
from resolute.contracts.clock import SYSTEM_CLOCK, Clock, DueTime
from resolute.contracts.files.atomic_files import read_json, write_atomically, write_json
from resolute.contracts.processes import ProcessIdentity
from resolute.contracts.run.directory import RunDirectory
from resolute.contracts.run.exit_record import ExitRecord
from resolute.contracts.run.lock import RunLock
from resolute.contracts.run.shared_memory.flags import Flags
from resolute.errors import ConflictError, ResoluteError, RunSupersededError
from resolute.runtime.offline_run import OfflineRun
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.shipping import SpoolShipper
from resolute.spool.omissions import read_left_out
from resolute.spool.report_writer import refusals_of

HEARTBEAT_SECONDS = 60.0
RETRY_SECONDS = 10.0
"""Seconds until a heartbeat that failed is tried again."""
ENDED_SILENTLY = "the script ended without saying how: it was killed, or its machine failed"
"""Failure of a run whose script left no exit record."""
_POLL_SECONDS = 0.2
_log = logging.getLogger("resolute.sidecar")


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarConfig:
    """The config of a sidecar, in a file of the run's directory."""

    address: str
    """``host:port`` of the services."""
    tls: dict[str, str] | None
    """Whom to trust; None for a plain port."""
    identity: dict[str, Any]
    """Fields of the ``RunIdentity``."""
    trainer: dict[str, Any]
    """The script's process."""
    outage_timeout: float
    """Seconds to continue after the script has ended."""

    def write(self, run: RunDirectory) -> None:
        """Leaves the order for the sidecar."""
        write_json(_config_file(run), asdict(self))

    @classmethod
    def read(cls, run: RunDirectory) -> SidecarConfig:
        """Reads the order.

        Raises:
            FileNotFoundError: There is none.
        """
        content = read_json(_config_file(run))
        if content is None:
            raise FileNotFoundError(_config_file(run))
        return cls(**content)


def _config_file(run: RunDirectory) -> Path:
    return run.path / "sidecar.json"


class Sidecar:
    """Sends the reports and heartbeats of one run.

    Args:
        run: The run's directory.
        trainer: The script's process.
        identity: The run that the reports and lines belong to.
        trials: Calls of the trials service.
        shipping: Sends the reports and lines.
        outage_timeout: Seconds to continue after the script has ended.
        clock: Measures heartbeats and the timeout.
        wait: Waits some seconds.
    """

    def __init__(
        self,
        run: OfflineRun,
        *,
        trainer: ProcessIdentity | None,
        identity: RunIdentity,
        trials: Trials,
        shipping: SpoolShipper,
        outage_timeout: float,
        clock: Clock = SYSTEM_CLOCK,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._run = run
        self._files = RunDirectory(run.directory)
        self._flags = Flags.create(self._files.flags_file)
        self._trainer = trainer
        self._identity = identity
        self._trials = trials
        self._shipping = shipping
        self._outage_timeout = outage_timeout
        self._clock = clock
        self._wait = wait
        self._heartbeat = DueTime(clock)
        self._heartbeat.set(HEARTBEAT_SECONDS)

    def serve(self) -> bool:
        """Serves until the script has ended and everything has arrived.

        Returns:
            Whether it has.
        """
        self._shipping.start()
        try:
            while not self._run.exit_file.exists() and self._trainer is not None and self._trainer.is_alive():
                self._keep_alive()
                self._wait(_POLL_SECONDS)
            deadline = self._clock.monotonic() + self._outage_timeout
            return self._shipping.drain(give_up=lambda: self._should_give_up(deadline)) and self._report_exit(
                deadline
            )
        finally:
            self._shipping.stop()

    def _should_give_up(self, deadline: float) -> bool:
        self._keep_alive()
        return self._clock.monotonic() >= deadline

    def _keep_alive(self) -> None:
        if not self._heartbeat.reached:
            return
        pause = HEARTBEAT_SECONDS
        try:
            renewal = self._trials.renew(self._identity.trial_id, self._identity.run)
            write_atomically(self._files.token_file, renewal.token)
            if renewal.ended:
                # The script sees it as any other preemption.
                self._flags.set_signal(revision=1, preempt=True)
        except RunSupersededError as refusal:
            _log.warning("%s", refusal)
            self._flags.set_signal(revision=1, preempt=True)
        except ResoluteError as failure:
            _log.warning("a heartbeat failed: %s", failure)
            pause = RETRY_SECONDS
        self._heartbeat.set(pause)

    def _report_exit(self, deadline: float) -> bool:
        """Reports how the run ended until that is acknowledged."""
        ended = ExitRecord.read(self._run.exit_file) or ExitRecord(
            exit_code=1,
            failure=ENDED_SILENTLY,
            end_time=self._clock.time(),
        )
        ended = replace(ended, left_out=read_left_out(self._run.spool))
        while True:
            try:
                self._trials.end(self._identity.trial_id, self._identity.run, ended)
            except ResoluteError as failure:
                _log.warning("the end of the run is not known yet: %s", failure)
                if self._clock.monotonic() >= deadline:
                    return False
                self._wait(min(RETRY_SECONDS, max(deadline - self._clock.monotonic(), 0.0)))
            else:
                return True


def main(directory: Path) -> int:
    """Looks after the run in a directory.

    Returns:
        0 when everything has arrived, 1 when something waits for ``resolute sync``.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s: %(message)s")
    run, files = OfflineRun.load(directory), RunDirectory(directory)
    order = SidecarConfig.read(files)
    try:
        lock = RunLock.acquire(run.lock_file)
    except ConflictError:
        _log.error("%s is being sent by another process", directory)
        return 1
    identity = RunIdentity(**order.identity)
    endpoint = Endpoint(
        address=order.address,
        token=files.read_token,
        token_origin=f"from {files.token_file}",
        remedy="check that the cluster runs",
        credential_file=files.token_file,
        tls=ClientTls.from_json(order.tls),
    )
    with Session(endpoint) as session:
        sidecar = Sidecar(
            run,
            trainer=ProcessIdentity.from_json(order.trainer),
            identity=identity,
            trials=Trials(session),
            shipping=session.stub(
                lambda channel: SpoolShipper(channel, run.spool, identity, clock=SYSTEM_CLOCK)
            ),
            outage_timeout=order.outage_timeout,
        )
        done = sidecar.serve()
    if done and not list(refusals_of(run.spool)):
        run.remove()
    lock.release()
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
