"""Storage of a Slurm that hangs, as a mount whose server stopped: its engine is away, and nothing else."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PosixPath
from typing import Any, ClassVar

import pytest
from support.engines.scripted import Cluster, fresh_database, scenario
from support.engines.session import until
from support.waiting import wait_until_async

from resolute.errors import UnavailableError
from resolute_engines.environment import SupervisorTerms
from resolute_engines.kit.run_directories import deliveries as deliveries_module
from resolute_engines.kit.run_directories.container import RunContainer
from resolute_engines.kit.run_directories.deliveries import Deliveries
from resolute_engines.protocol import AllocationSpec, ContainerState
from resolute_engines.slurm import engine as engine_module
from resolute_engines.slurm.client import SlurmClient
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.engine import SlurmEngine
from resolute_engines.slurm.request import SlurmNodes, note_submitted, prepare
from resolute_engines.slurm.settings import SlurmPoolOptions
from resolute_serving.database.engine import Database

SECONDS = 60.0
SUBMITS = """\
#!/bin/sh
for option; do case $option in --job-name=*) echo "7|PENDING|Priority|${{option#*=}}|" >> {jobs};; esac; done
cat > /dev/null
"""
HANGS = """
import asyncio, pathlib, sys
from resolute.errors import UnavailableError
from resolute_engines.kit.shared_storage import SharedStorage

async def main():
    fifo = pathlib.Path(sys.argv[1])
    storage = SharedStorage(fifo.parent, name="runs", seconds=0.2)
    for read in (storage.ask("t.1", fifo.read_text), storage.ask("t.1", fifo.read_text)):
        try:
            await read
        except UnavailableError as failure:
            print(failure)
    storage.close()

asyncio.run(main())
"""


class HungPath(PosixPath):
    """What lies on a mount whose server answers only at times."""

    answers: ClassVar[threading.Event] = threading.Event()

    def _wait(self) -> None:
        assert self.answers.wait(SECONDS)

    def stat(self, **options: Any) -> Any:
        self._wait()
        return super().stat(**options)

    def mkdir(self, *arguments: Any, **options: Any) -> None:
        self._wait()
        super().mkdir(*arguments, **options)

    def iterdir(self) -> Any:
        self._wait()
        return super().iterdir()

    def glob(self, *arguments: Any, **options: Any) -> Any:
        self._wait()
        return super().glob(*arguments, **options)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[HungPath]:
    """A mount that answers, and does again after the test."""
    (tmp_path / "runs").mkdir()
    HungPath.answers.set()
    yield HungPath(tmp_path / "runs")
    HungPath.answers.set()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The database of a cluster."""
    with fresh_database(tmp_path) as database:
        yield database


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The jobs that the Slurm of ``manager_of`` was given."""
    return tmp_path / "jobs"


def manager_of(runs: Path, jobs: Path) -> SlurmEngine:
    """A Slurm that queues what it is given; its storage is late after a moment."""
    jobs.touch()
    no_accounting = "#!/bin/sh\necho Slurm accounting storage is disabled >&2; exit 1\n"
    nothing = "#!/bin/sh\n"
    does = {
        "sbatch": SUBMITS.format(jobs=jobs),
        "squeue": f"#!/bin/sh\ncat {jobs}\n",
        "scancel": nothing,
        "sinfo": nothing,
        "sacct": no_accounting,
    }
    for command, script in does.items():
        (jobs.parent / command).write_text(script)
        (jobs.parent / command).chmod(0o700)
    manager = SlurmEngine(
        SlurmClient(SlurmCommands(environment={"PATH": f"{jobs.parent}:/usr/bin:/bin"})),
        pools={"far": SlurmPoolOptions()},
        runs=runs,
        terms=SupervisorTerms(log_wait=1.0),
        nodes=SlurmNodes(python="python"),
        cluster="c",
    )
    manager._storage._seconds = 0.3
    return manager


async def threads_are_free() -> None:
    """Everything else finds a thread, however few there are."""
    await asyncio.wait_for(asyncio.to_thread(lambda: None), SECONDS / 4)


def use_few_threads() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))


def test_storage_that_hangs_makes_its_engine_alone_unavailable(
    database: Database, mount: HungPath, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries_module, "_LOOK_SECONDS", 0.1)

    async def body(made: Cluster) -> None:
        use_few_threads()
        made.engines[1].engine = made.engines[1].contact.engine = manager_of(mount, jobs)
        await made.submit("there", pool="far")
        await made.submit("here", pool="default")
        mount.answers.clear()
        try:
            async with made.running():
                await made.scheduler.schedule()
                await wait_until_async(lambda: made.wakes(made.fleet.problems), what="the problem")
                (problem,) = made.fleet.problems()
                assert "engine distant does not answer" in problem
                # The first call says how long it waited, one that finds it still waiting does not.
                assert re.search(
                    f"{mount} (did not answer for 0.3 s|still does not answer): look at its mount", problem
                )
                # What health and metrics ask for, more often than there are threads.
                for _ in range(10):
                    assert await asyncio.wait_for(made.fleet.backlog_seconds(), SECONDS / 4) == 7.0
                    made.engines[1].wake()
                await threads_are_free()
                await wait_until_async(
                    lambda: made.wakes(lambda: ("launch", "here.1") in made.near.asked), what="the other"
                )
                assert len([one for one in threading.enumerate() if one.name.startswith("runs-c-")]) <= 7
                assert not jobs.read_text()
                mount.answers.set()
                await wait_until_async(lambda: made.wakes(jobs.read_text), what="the launch")
                await wait_until_async(
                    lambda: made.wakes(lambda: not made.fleet.problems()), what="an answer"
                )
        finally:
            mount.answers.set()
        assert jobs.read_text().splitlines() == ["7|PENDING|Priority|c-there.1|"]

    scenario(database, body)


def test_a_launch_that_is_late_is_repeated_only_once_it_has_ended(
    tmp_path: Path, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, prepared = threading.Event(), []

    def late(spec: AllocationSpec, **options: Any) -> None:
        prepared.append(spec)
        assert answers.wait(SECONDS)
        prepare(spec, **options)

    monkeypatch.setattr(engine_module, "prepare", late)
    spec = AllocationSpec(
        allocation_id="t.1", placements=((0,),), address="head:1", token="token-0", pool="far"
    )

    async def body() -> None:
        manager = manager_of(tmp_path / "runs", jobs)

        async def launched() -> bool:
            try:
                await manager.launch(spec)
            except UnavailableError:
                return False
            return True

        try:
            assert not await launched()
            assert not await launched()
            with pytest.raises(UnavailableError, match="still does not answer"):
                # It would remove what is being written.
                await manager.release("t.1")
            assert (len(prepared), jobs.read_text()) == (1, "")
        finally:
            answers.set()
        await until(launched, "the launch")
        assert await launched()
        assert len(jobs.read_text().splitlines()) == 1
        await manager.close()

    asyncio.run(asyncio.wait_for(body(), SECONDS))


def test_the_backlog_is_that_of_the_last_look_while_one_hangs(
    tmp_path: Path, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries_module, "_LOOK_SECONDS", 0.2)
    answers, looks = threading.Event(), []

    def look(deliveries: Deliveries) -> float:
        looks.append(deliveries)
        assert answers.wait(SECONDS)
        return float(len(looks))

    monkeypatch.setattr(Deliveries, "_look_at_backlog", look)

    async def body() -> None:
        manager = manager_of(tmp_path / "runs", jobs)
        answers.set()
        assert await manager.backlog.seconds() == 1.0
        answers.clear()
        try:
            assert [await manager.backlog.seconds() for _ in range(4)] == [1.0] * 4
            assert len(looks) == 2, "one at a time"
        finally:
            answers.set()

        async def looked() -> bool:
            return await manager.backlog.seconds() > 1.0

        await until(looked, "the next look")
        await manager.close()

    asyncio.run(asyncio.wait_for(body(), SECONDS))


def test_a_file_that_hangs_keeps_only_its_own_run_from_being_looked_at(tmp_path: Path, jobs: Path) -> None:
    runs = tmp_path / "runs"
    for name in ("bad.1", "good.1"):
        container = RunContainer(runs, name, 0)
        container.run.prepare()
        container.run.supervisor_file.write_text("{}")
        note_submitted(runs / name, 7)
    fifo = RunContainer(runs, "bad.1", 0).run.exit_file
    os.mkfifo(fifo)

    async def body() -> None:
        use_few_threads()
        manager = manager_of(runs, jobs)
        try:
            for _ in range(6):
                with pytest.raises(UnavailableError, match=f"{runs} .*does not answer|{runs} did not answer"):
                    await asyncio.wait_for(manager.inspect("bad.1"), SECONDS / 4)
                (report,) = await manager.inspect("good.1")
                assert report.state is ContainerState.ENDED
            await threads_are_free()
        finally:
            # The one that reads it, and the next one, find an end.
            descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
            fifo.unlink()
            os.close(descriptor)
            await manager.close()

    asyncio.run(asyncio.wait_for(body(), SECONDS))


def test_a_thread_that_hangs_keeps_no_process_from_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(tmp_path / "fifo")],
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{tmp_path} did not answer for 0.2 s")
    assert second.startswith(f"{tmp_path} still does not answer")


def test_storage_that_was_closed_takes_no_more_calls(tmp_path: Path, jobs: Path) -> None:
    async def body() -> None:
        manager = manager_of(tmp_path, jobs)
        assert await manager.backlog.unreported() == []
        await manager.close()
        with pytest.raises(UnavailableError, match="being stopped"):
            await manager.backlog.unreported()

        def ended() -> bool:
            return not any(one.name.startswith("runs-c-walk") for one in threading.enumerate())

        await wait_until_async(ended, what="the thread's end")

    asyncio.run(asyncio.wait_for(body(), SECONDS))
