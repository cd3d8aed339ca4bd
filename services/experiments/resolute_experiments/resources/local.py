"""The default resource manager: supervisors as processes of this machine, one session each.

Supervisors outlive this process. What they are is told by their run directories alone: a lock that is held
means alive, an exit record means exited, neither means lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import structlog

from resolute.errors import ConflictError, DataLossError
from resolute.exit_record import ExitRecord
from resolute.launch_order import LaunchOrder
from resolute.processes import Family, ProcessIdentity, open_pidfd
from resolute.run_directory import ENVIRONMENT_VARIABLE, RunDirectory, read_json
from resolute.run_lock import RunLock, is_locked
from resolute.spool.ack import AckFile
from resolute_experiments.resources.base import AllocationSpec, ContainerReport, ContainerState, Slot
from resolute_experiments.resources.slots import detect_slots

_ORPHAN_SECONDS = 30.0
_POLL_SECONDS = 0.5
_LOG_TAIL = 2000
_log = structlog.get_logger("local")


class LocalResourceManager:
    """Runs allocations on the slots of this machine.

    Args:
        runs: Where run directories lie: ``<allocation>/<container rank>``.
        slots: Number of slots; None to count GPUs, or else cores.
        lease_patience: Seconds that a run goes on while no service answers.
    """

    def __init__(self, runs: Path, *, slots: int | None = None, lease_patience: float = 3600.0) -> None:
        self._runs = runs
        self._slots = detect_slots(slots)
        self._lease_patience = lease_patience
        self._reports: asyncio.Queue[ContainerReport | None] = asyncio.Queue()
        self._watchers: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def capacity(self) -> Sequence[Slot]:
        """Every slot, by id."""
        return self._slots

    async def launch(self, spec: AllocationSpec) -> None:
        """Starts the supervisors of an allocation; those that live, or ended already, are left alone.

        Raises:
            OSError: They cannot be started, because the disk is full for example.
        """
        for rank, slot_ids in enumerate(spec.placements):
            await asyncio.to_thread(self._launch_one, spec, rank, slot_ids)
            self._watch_one(spec.allocation_id, rank)

    def _launch_one(self, spec: AllocationSpec, rank: int, slot_ids: Sequence[int]) -> None:
        run = self._run(spec.allocation_id, rank)
        run.prepare()
        try:
            lock = RunLock.acquire(run.lock_file)
        except ConflictError:
            return
        try:
            if run.supervisor_file.exists() or run.exit_file.exists():
                return
            self._order(spec, rank, slot_ids).write(run.launch_file)
            self._start(run, lock)
        finally:
            lock.release()

    def _order(self, spec: AllocationSpec, rank: int, slot_ids: Sequence[int]) -> LaunchOrder:
        kinds = {slot.id: slot.kind for slot in self._slots}
        kind = kinds[slot_ids[0]].value if slot_ids else "cpu"
        return LaunchOrder(
            allocation_id=spec.allocation_id,
            container_rank=rank,
            master=spec.address,
            token=spec.token,
            slot_ids=tuple(slot_ids),
            slot_kind=kind,
            devices=tuple(str(slot) for slot in slot_ids) if kind == "gpu" else (),
            agent_id=socket.gethostname(),
            python=sys.executable,
            lease_patience_seconds=self._lease_patience,
        )

    def _start(self, run: RunDirectory, lock: RunLock) -> None:
        command = [
            sys.executable,
            "-m",
            "resolute_launch.supervisor",
            str(run.path),
            "--lock-fd",
            str(lock.descriptor),
        ]
        with (run.path / "supervisor.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=run.path,
                start_new_session=True,
                pass_fds=(lock.descriptor,),
            )
        # Kept until it has ended, so that it can be waited for and leaves no zombie.
        self._children[process.pid] = process

    async def inspect(self, allocation_id: str) -> Sequence[ContainerReport]:
        """Tells the state of every container by rank, and ends what a lost supervisor left running."""
        folder = self._runs / allocation_id
        ranks = sorted(int(path.name) for path in folder.iterdir()) if folder.is_dir() else []
        reports = []
        for rank in ranks:
            report = await asyncio.to_thread(self._inspect_one, allocation_id, rank)
            if report.state is ContainerState.ALIVE:
                self._watch_one(allocation_id, rank)
            reports.append(report)
        return reports

    def _inspect_one(self, allocation_id: str, rank: int) -> ContainerReport:
        run = self._run(allocation_id, rank)
        if is_locked(run.lock_file):
            return _report(allocation_id, rank, ContainerState.ALIVE)
        try:
            record = ExitRecord.read(run.exit_file)
        except (ValueError, DataLossError) as error:
            _log.warning("exit record cannot be read", run=str(run.path), error=str(error))
            record = None
        if record is not None:
            return _report(allocation_id, rank, ContainerState.EXITED, record)
        if not run.supervisor_file.exists() and not run.child_file.exists():
            return _report(allocation_id, rank, ContainerState.UNKNOWN)
        self._end_orphans(run)
        return _report(allocation_id, rank, ContainerState.LOST)

    def _end_orphans(self, run: RunDirectory) -> None:
        """Ends what a dead supervisor left running, before its slots are given away."""
        leader = ProcessIdentity.from_json(read_json(run.child_file))
        family = Family(leader=leader, variable=f"{ENVIRONMENT_VARIABLE}={run.path}".encode())
        left = family.end(timeout=_ORPHAN_SECONDS)
        if left:
            _log.error("orphans do not end", run=str(run.path), pids=[process.pid for process in left])

    async def kill(self, allocation_id: str) -> None:
        """Ends every process of an allocation at once, its supervisors included."""
        folder = self._runs / allocation_id
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            await asyncio.to_thread(self._kill_one, RunDirectory(path))

    def _kill_one(self, run: RunDirectory) -> None:
        supervisor = ProcessIdentity.from_json(read_json(run.supervisor_file))
        if supervisor is not None:
            supervisor.send(signal.SIGKILL)
        self._end_orphans(run)

    async def release(self, allocation_id: str) -> None:
        """Forgets an allocation that was settled; what its run left on disk goes, undelivered spools stay."""
        for key in [key for key in self._watchers if key[0] == allocation_id]:
            watcher = self._watchers.pop(key)
            watcher.cancel()
        folder = self._runs / allocation_id
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            await asyncio.to_thread(_clean, RunDirectory(path))
        with contextlib.suppress(OSError):
            folder.rmdir()

    async def watch(self) -> AsyncIterator[ContainerReport]:
        """Reports each container whose supervisor ended, until ``close``."""
        while (report := await self._reports.get()) is not None:
            yield report

    async def close(self) -> None:
        """Ends the watching. Supervisors go on."""
        watchers = list(self._watchers.values())
        self._watchers.clear()
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        await self._reports.put(None)

    def _run(self, allocation_id: str, rank: int) -> RunDirectory:
        return RunDirectory(self._runs / allocation_id / str(rank))

    def _watch_one(self, allocation_id: str, rank: int) -> None:
        key = (allocation_id, rank)
        if key not in self._watchers:
            name = f"watch-{allocation_id}-{rank}"
            self._watchers[key] = asyncio.create_task(self._wait_for_end(allocation_id, rank), name=name)

    async def _wait_for_end(self, allocation_id: str, rank: int) -> None:
        run = self._run(allocation_id, rank)
        while is_locked(run.lock_file):
            supervisor = ProcessIdentity.from_json(read_json(run.supervisor_file))
            await _until_ended(supervisor)
        self._reap()
        report = await asyncio.to_thread(self._inspect_one, allocation_id, rank)
        if report.state is ContainerState.UNKNOWN:
            # It was launched and has left no trace: it could not even begin.
            report = _report(allocation_id, rank, ContainerState.EXITED, _never_began(run))
        await self._reports.put(report)

    def _reap(self) -> None:
        for pid, process in list(self._children.items()):
            if process.poll() is not None:
                del self._children[pid]


def _report(
    allocation_id: str, rank: int, state: ContainerState, record: ExitRecord | None = None
) -> ContainerReport:
    return ContainerReport(allocation_id=allocation_id, container_rank=rank, state=state, exit=record)


def _never_began(run: RunDirectory) -> ExitRecord:
    log = run.path / "supervisor.log"
    tail = log.read_text(errors="replace")[-_LOG_TAIL:].strip() if log.exists() else ""
    failure = f"the supervisor of the run did not start:\n{tail}"
    return ExitRecord(exit_code=1, failure=failure, failed_before_entrypoint=True)


async def _until_ended(process: ProcessIdentity | None) -> None:
    """Waits until a process has ended, or a moment where the kernel cannot tell."""
    descriptor = None
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            descriptor = open_pidfd(process.pid)
    if descriptor is None or process != ProcessIdentity.of(process.pid if process else 0):
        if descriptor is not None:
            os.close(descriptor)
        await asyncio.sleep(_POLL_SECONDS)
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _clean(run: RunDirectory) -> None:
    """Removes a run directory, unless something in it was not delivered yet."""
    if is_locked(run.lock_file) or _undelivered(run):
        return
    shutil.rmtree(run.path, ignore_errors=True)


def _undelivered(run: RunDirectory) -> bool:
    spools = [path for pattern in ("*.metrics", "*.logs") for path in run.spool.glob(pattern)]
    return any(AckFile.of(path).offset < path.stat().st_size for path in spools)
