"""Storage that the nodes share may not answer for minutes: the event loop never waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path, PosixPath
from typing import Any, ClassVar

import pytest

from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_engines.slurm import engine as engine_module
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.commands.jobs import Job
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.engine import SlurmEngine
from resolute_engines.slurm.request import SlurmNodes, note_submitted
from resolute_engines.slurm.settings import SlurmPoolOptions
from resolute_engines.slurm.states import container_reports


class SharedPath(PosixPath):
    """Notes what is asked of it by the event loop instead of by a thread."""

    asked_by_the_loop: ClassVar[list[str]] = []

    def _note(self, question: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.asked_by_the_loop.append(f"{question} {self.name}")

    def stat(self, **options: Any) -> Any:
        self._note("stat")
        return super().stat(**options)

    def touch(self, *arguments: Any, **options: Any) -> None:
        self._note("touch")
        super().touch(*arguments, **options)

    def iterdir(self) -> Any:
        self._note("iterdir")
        return super().iterdir()

    def glob(self, *arguments: Any, **options: Any) -> Any:
        self._note("glob")
        return super().glob(*arguments, **options)


@pytest.fixture
def commands(tmp_path: Path) -> SlurmCommands:
    """Commands of a Slurm that knows no job and no node, and keeps no accounting."""
    no_accounting = "echo Slurm accounting storage is disabled >&2; exit 1\n"
    for command, does in {"squeue": "", "scancel": "", "sinfo": "", "sacct": no_accounting}.items():
        (tmp_path / command).write_text(f"#!/bin/sh\n{does}")
        (tmp_path / command).chmod(0o700)
    return SlurmCommands(environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})


def manager_of(commands: SlurmCommands, runs: Path) -> SlurmEngine:
    return SlurmEngine(
        SlurmClient(commands),
        pools={"batch": SlurmPoolOptions()},
        runs=runs,
        terms=SupervisorTerms(log_wait=1.0),
        nodes=SlurmNodes(python="python"),
        cluster="c",
    )


def test_the_event_loop_asks_nothing_of_shared_storage(commands: SlurmCommands, tmp_path: Path) -> None:
    runs = SharedPath(tmp_path / "runs")
    for name in ("ended.1", "released.1"):
        (runs / name / "0").mkdir(parents=True)
        note_submitted(runs / name, 7)
    (runs / "released.1" / "released").touch()

    async def body() -> None:
        manager = manager_of(commands, runs)
        SharedPath.asked_by_the_loop.clear()
        watching = asyncio.ensure_future(anext(manager.watch()))
        (report,) = await manager.inspect("ended.1")
        assert report.state is ContainerState.ENDED
        await manager.stop("ended.1", grace=60.0)
        await manager.kill("ended.1")
        assert await manager.leftovers() == ["ended.1"]
        await manager.release("ended.1")
        await manager.release("unknown.1")
        await manager.close()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(asyncio.wait_for(body(), 60))
    assert SharedPath.asked_by_the_loop == []


def test_a_run_whose_files_cannot_be_read_keeps_no_other_from_being_watched(
    commands: SlurmCommands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    for name in ("bad.1", "good.1"):
        (runs / name / "0").mkdir(parents=True)
        note_submitted(runs / name, 7)

    def reports(folder: Path, allocation_id: str, job: Job | None) -> list[ContainerReport]:
        if allocation_id == "bad.1":
            raise OSError("stale file handle")
        return container_reports(folder, allocation_id, job)

    monkeypatch.setattr(engine_module, "container_reports", reports)

    async def body() -> None:
        manager = manager_of(commands, runs)
        for name in ("bad.1", "good.1"):
            manager._watched.add(name, containers=1)
        report = await anext(manager.watch())
        assert isinstance(report, ContainerReport)
        assert (report.allocation_id, report.state) == ("good.1", ContainerState.ENDED)
        assert manager._watched.names() == ["bad.1"]
        await manager.close()

    asyncio.run(asyncio.wait_for(body(), 60))


def test_a_run_in_slurms_queue_is_watched_on_while_the_storage_of_the_runs_is_away(
    commands: SlurmCommands, tmp_path: Path
) -> None:
    (tmp_path / "squeue").write_text("#!/bin/sh\necho '7|PENDING|Priority|c-t.1|'\n")
    runs = tmp_path / "runs"
    (runs / "t.1" / "0").mkdir(parents=True)

    async def body() -> None:
        manager = manager_of(commands, runs)
        (report,) = await manager.inspect("t.1")
        assert report.state is ContainerState.QUEUED
        runs.rename(tmp_path / "away")
        assert await manager._look_at_jobs() == []
        (tmp_path / "away").rename(runs)
        assert await manager._look_at_jobs() == [report]
        await manager.close()

    asyncio.run(asyncio.wait_for(body(), 60))


@pytest.mark.parametrize("spoiled", [Path.mkdir, lambda path: path.write_text("{")])
def test_a_run_that_spoils_the_record_of_its_end_is_lost(
    tmp_path: Path, spoiled: Callable[[Path], object]
) -> None:
    container = RunContainer(tmp_path, "t.1", 0)
    container.run.prepare()
    container.run.supervisor_file.write_text("{}")
    spoiled(container.run.exit_file)
    note_submitted(tmp_path / "t.1", 7)
    (report,) = container_reports(tmp_path, "t.1", None)
    assert report.lost
