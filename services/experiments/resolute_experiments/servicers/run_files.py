"""Handlers of TrialsService for the held files of failed runs."""

from __future__ import annotations

from typing import Any

from sqlalchemy.engine import Connection

from resolute.api.experiments.v1 import trials_service_pb2 as pb2
from resolute.contracts.times import to_timestamp
from resolute.errors import FailedPreconditionError, NotFoundError
from resolute_experiments.allocations.pools import Pools
from resolute_experiments.context import ServiceContext
from resolute_experiments.store import runs
from resolute_serving.validation import invalid

_MOST_BYTES = 1024 * 1024
_LONGEST_PATH = 4096


class RunFileHandlers:
    """Shows the held files of runs.

    Args:
        core: The context that all handlers share.
        pools: The pools, whose engines hold the files.
    """

    def __init__(self, core: ServiceContext, pools: Pools) -> None:
        self._core = core
        self._pools = pools

    async def ListRunFiles(self, request: pb2.ListRunFilesRequest, context: Any) -> pb2.ListRunFilesResponse:
        """Lists the files of a run."""
        run = await self._core.database.read(lambda c: self._run(c, request.trial, request.run))
        files = await self._pools.engine_of(run.resource_pool).releases.files(run)
        return pb2.ListRunFilesResponse(
            run=run.run,
            hold_time=None if run.held_until is None else to_timestamp(run.held_until),
            files=[pb2.ListRunFilesResponse.File(path=file.path, size=file.size) for file in files],
        )

    async def ReadRunFile(self, request: pb2.ReadRunFileRequest, context: Any) -> pb2.ReadRunFileResponse:
        """Reads a part of a file."""
        if len(request.path) > _LONGEST_PATH:
            raise invalid("path", f"path has {len(request.path)} characters; {_LONGEST_PATH} are allowed")
        if request.offset < 0:
            raise invalid("offset", f"offset is {request.offset}; it is from 0")
        run = await self._core.database.read(lambda c: self._run(c, request.trial, request.run))
        releases = self._pools.engine_of(run.resource_pool).releases
        data = await releases.read_file(run, request.path, offset=request.offset, size=_MOST_BYTES)
        return pb2.ReadRunFileResponse(data=data)

    def _run(self, connection: Connection, key: Any, number: int) -> runs.Run:
        trial = self._core.trial(connection, key)
        of_trial = runs.of_trial(connection, trial.id)
        chosen = [run for run in of_trial if run.run == number or (not number and run.held_until is not None)]
        if chosen:
            return chosen[-1]
        if number:
            raise NotFoundError(f"{trial.label} has no run {number}; it has had {trial.run}")
        raise FailedPreconditionError(
            f"no files of {trial.label} are held: on_failure.hold in the config holds those of runs that fail"
        )
