"""Records the ends of containers that did not report them. Ends that cannot be written are kept in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy.engine import Connection

from resolute.contracts.run.exit_record import ExitRecord
from resolute.errors import InternalError, NotFoundError, ResoluteError
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_experiments.allocations.leases import Leases
from resolute_experiments.context import ServiceContext
from resolute_experiments.exits.recording import record_container_exit
from resolute_experiments.store import runs

_log = structlog.get_logger("fleet")


class ContainerEnds:
    """The ends of containers that an engine reports.

    Args:
        core: The service's database, clock and notifier.
        leases: Tells which containers have renewed recently.
    """

    def __init__(self, core: ServiceContext, leases: Leases) -> None:
        self._core = core
        self._leases = leases
        self._unnoted: list[ContainerReport] = []
        """Ends that could not be noted yet: the watcher of a container reports its end once."""

    async def note(self, report: ContainerReport) -> None:
        """Writes down a container that ended, unless it reported that itself."""
        if report.state is not ContainerState.ENDED:
            return
        timing = self._core.timing()
        silence = self._leases.silence(report.allocation_id, report.container_rank)

        def work(connection: Connection) -> str:
            run = runs.get(connection, report.allocation_id)
            container = runs.container(connection, report.allocation_id, report.container_rank)
            if container.over or run.ended:
                return ""
            rank = report.container_rank
            if report.exit is None:
                # An engine may take minutes to notice that a node is gone. Others fail of that before, and
                # must not pass for the cause.
                gone_at = timing.now - silence
                record_container_exit(
                    connection, run, rank, timing, end_time=gone_at, lost=True, failure=report.reason
                )
            else:
                record_container_exit(connection, run, rank, timing, **_exit_values(report.exit))
            return run.experiment_id

        try:
            experiment_id = await self._core.database.write(work)
        except NotFoundError:
            return
        if experiment_id:
            _log.info(
                "container ended", allocation=report.allocation_id, lost=report.lost, reason=report.reason
            )
            self._leases.forget(report.allocation_id)
            self._core.notifier.notify(experiment_id)

    async def note_or_keep(self, report: ContainerReport) -> None:
        """Writes down a container that ended; what cannot be written now is kept for ``note_again``."""
        try:
            await self.note(report)
        except Exception as failure:  # noqa: BLE001 - the others must be noted; this one is noted later
            expected = isinstance(failure, ResoluteError) and not isinstance(failure, InternalError)
            _log.warning(
                "the end of a container could not be noted; it will be tried again",
                container=report,
                reason=str(failure),
                exc_info=None if expected else failure,
            )
            self._unnoted.append(report)

    async def note_again(self) -> None:
        """Notes the ends that could not be noted when they came, such as while the database was away.

        A container whose supervisor left no trace would look like one that was not launched.
        """
        waiting, self._unnoted = self._unnoted, []
        for report in waiting:
            await self.note_or_keep(report)

    async def note_all_lost(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        """Notes that nothing is left of a run that was under way."""
        _log.warning("no files are left of a run that was active", allocation=run.allocation_id)
        await self._note_all(run, containers, None)

    async def note_never_began(self, run: runs.Run, containers: Sequence[runs.Container]) -> None:
        """Notes that a run had to end before anything of it began."""
        await self._note_all(run, containers, ExitRecord.withdrawn())

    async def _note_all(
        self, run: runs.Run, containers: Sequence[runs.Container], record: ExitRecord | None
    ) -> None:
        for container in containers:
            await self.note(
                ContainerReport(
                    allocation_id=run.allocation_id,
                    container_rank=container.container_rank,
                    state=ContainerState.ENDED,
                    exit=record,
                )
            )

    async def note_failed_launch(self, run: runs.Run, failure: str) -> None:
        """Notes that a run could not be started."""
        timing, record = self._core.timing(), ExitRecord.failed_launch(failure)

        def work(connection: Connection) -> None:
            for container in runs.containers_of(connection, run.allocation_id):
                record_container_exit(
                    connection,
                    run,
                    container.container_rank,
                    timing,
                    exited=True,
                    # One that had begun was ended before, and is missed by anyone who watches it.
                    lost=False,
                    exit_code=record.exit_code,
                    failure=record.failure,
                )

        await self._core.database.write(work)
        self._core.notifier.notify(run.experiment_id)


def _exit_values(record: ExitRecord) -> dict[str, Any]:
    return {
        "end_time": record.end_time,
        "exited": True,
        "exit_code": record.exit_code,
        "acknowledged": record.acknowledged,
        "early_exit_reason": record.early_exit_reason,
        "failure": record.failure,
        "left_out": record.left_out,
    }
