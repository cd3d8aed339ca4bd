"""How jobs ended that Slurm's controller has forgotten: a real Slurm with a real accounting."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.clocks import ManualClock
from support.clusters.control_plane import ControlPlane
from support.daemons.slurm import SlurmCluster, running_slurm
from support.daemons.slurm_accounting import SlurmAccounting
from support.daemons.ssh import running_login
from support.engines.session import ALLOCATION, TRAIN, cleared, engine_session, scenario, seen, until
from support.engines.slurm import SlurmUnderTest
from support.waiting import wait_until

from resolute.errors import UnavailableError
from resolute_embedded.doctor import Finding, Status
from resolute_embedded.doctor.engines.slurm import check_slurm
from resolute_engines.protocol import ContainerReport, ContainerState
from resolute_engines.settings import EngineSettings
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.accounting import Accounting
from resolute_engines.slurm.commands.jobs import Job
from resolute_engines.slurm.commands.login import LoginNode
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.engine import SlurmEngine

_WAIT_SECONDS = 120.0
_FAILS = "#!/bin/sh\nexit 3\n"
_WAITS = "#!/bin/sh\nexec sleep 600\n"
_LONG = 3600.0


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    """A Slurm with accounting, whose controller forgets jobs after seconds."""
    with running_slurm(accounting=True) as cluster:
        yield cluster


@pytest.fixture
def commands(slurm: SlurmCluster) -> SlurmCommands:
    """Commands of the cluster."""
    return SlurmCommands(environment=slurm.environment, deadline_seconds=60.0)


@pytest.fixture
def client(commands: SlurmCommands) -> SlurmClient:
    """A client of the cluster."""
    return SlurmClient(commands)


def test_job_that_the_controller_has_forgotten_is_known_with_the_word_and_the_reason_of_slurm(
    client: SlurmClient,
) -> None:
    failed, ended, held = _job(_FAILS), _job(_WAITS), replace(_job(_WAITS), options=("--hold",))
    jobs = [asyncio.run(client.submit(job)) for job in (failed, ended, held)]
    wait_until(lambda: _word(client, ended) == "RUNNING", seconds=_WAIT_SECONDS)
    for job in (ended, held):
        asyncio.run(client.cancel(job.name))
    found = [_forgotten(client, job) for job in (failed, ended, held)]
    assert [(job.id, job.name) for job in found] == [(job.id, job.name) for job in jobs]
    cancelled = ("CANCELLED", f"by {os.getuid()}")
    assert [(job.slurm_state, job.reason) for job in found] == [
        ("FAILED", "exit code 3:0"),
        cancelled,
        cancelled,
    ]


def test_of_several_jobs_of_a_name_it_is_the_first(client: SlurmClient, commands: SlurmCommands) -> None:
    job = _job(_FAILS)
    first = asyncio.run(client.submit(job))
    late = ["sbatch", f"--job-name={job.name}", "--dependency=singleton", "--output=/dev/null"]
    asyncio.run(commands.run(late, stdin=b"#!/bin/sh\n"))
    assert _forgotten(client, job).id == first.id


def test_job_that_was_requeued_is_known_by_its_last_end(client: SlurmClient, commands: SlurmCommands) -> None:
    job = replace(_job(_WAITS), options=("--requeue",))
    number = asyncio.run(client.submit(job)).id
    wait_until(lambda: _word(client, job) == "RUNNING", seconds=_WAIT_SECONDS)
    asyncio.run(commands.run(["scontrol", "requeue", str(number)]))
    wait_until(lambda: _word(client, job) == "PENDING", seconds=_WAIT_SECONDS)
    asyncio.run(client.cancel(job.name))
    assert (_forgotten(client, job).id, _forgotten(client, job).slurm_state) == (number, "CANCELLED")


def test_it_is_asked_on_a_login_node_like_the_controller(slurm: SlurmCluster, client: SlurmClient) -> None:
    job = _job(_FAILS)
    asyncio.run(client.submit(job))
    _forgotten(client, job)
    with running_login() as server:
        login = LoginNode(
            destination="login",
            config=str(server.config),
            variables={"SLURM_CONF": slurm.environment["SLURM_CONF"]},
        )
        there = SlurmClient(SlurmCommands(login=login, environment=slurm.environment, deadline_seconds=60.0))
        assert asyncio.run(there.accounting.find(job.name)) == _forgotten(client, job)


def test_accounting_that_is_away_is_waited_for_and_then_given_up(
    slurm: SlurmCluster, client: SlurmClient, commands: SlurmCommands
) -> None:
    job, clock = _job(_FAILS), ManualClock()
    impatient = Accounting(commands, clock=clock)
    with _accounting(slurm).away():
        asyncio.run(client.submit(job))
        wait_until(lambda: not _word(client, job), what="to be forgotten", seconds=_WAIT_SECONDS)
        with pytest.raises(
            UnavailableError, match=rf"how job {job.name} of Slurm ended .*Connection refused"
        ):
            asyncio.run(impatient.find(job.name))
        with pytest.raises(UnavailableError):
            asyncio.run(client.accounting.kept())
        assert _finding(slurm).status is Status.WARNING
        clock.advance(_LONG)
        assert asyncio.run(impatient.find(job.name)) is None
    # What it missed, Slurm's controller tells it now.
    assert _forgotten(client, job).slurm_state == "FAILED"
    clock.advance(_LONG)
    assert asyncio.run(impatient.find(job.name)) == _forgotten(client, job)


def test_doctor_finds_it(slurm: SlurmCluster) -> None:
    assert (_finding(slurm).status, _finding(slurm).detail) == (Status.OK, "`sacct` answers")


def test_run_that_failed_before_its_supervisor_began_has_failed_when_it_is_looked_at_late(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    engine = SlurmUnderTest(slurm, tmp_path / "runs")
    engine.python = str(tmp_path / "no-python")

    async def body() -> None:
        with engine.control_plane(TRAIN) as plane:
            async with cleared(engine):
                await _launch_and_leave(engine, plane)
                await _until_forgotten(engine)
                async with engine_session(engine) as later:
                    (report,) = await later.engine.inspect(ALLOCATION)
                assert report.exit is not None
                assert report.exit.failed_before_entrypoint
                assert "no-python" in report.exit.failure

    scenario(body)


def test_run_of_a_node_that_died_while_nobody_looked_is_lost_with_that_reason(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    engine = SlurmUnderTest(slurm, tmp_path / "runs", sbatch_args=["--nodelist=node3"])

    async def body() -> None:
        with engine.control_plane(TRAIN) as plane:
            async with cleared(engine):
                await _launch_and_leave(engine, plane)
                await seen(plane, "training")
                await asyncio.to_thread(slurm.kill, "node3")
                try:
                    await _until_forgotten(engine)
                finally:
                    slurm.start_node(3)
                async with engine_session(engine) as later:
                    (report,) = await later.engine.inspect(ALLOCATION)
                assert report.lost
                assert "is NODE_FAIL" in report.reason

    scenario(body)
    wait_until(slurm.all_idle, what="the node's return", seconds=_WAIT_SECONDS, pause=0.2)


def test_other_runs_are_watched_while_accounting_is_away(slurm: SlurmCluster, tmp_path: Path) -> None:
    engine = SlurmUnderTest(slurm, tmp_path / "runs", allowed_sbatch_args=["*"])

    async def body() -> None:
        with engine.control_plane("exit 3") as plane:
            async with cleared(engine, "lost.1"):
                manager, spec = engine.open(), engine.spec(plane)
                with _accounting(slurm).away():
                    held = {"slurm": {"sbatch_args": ["--hold"]}}
                    await manager.launch(replace(spec, allocation_id="lost.1", config=held))
                    await engine.client.cancel(_name(engine, "lost.1"))
                    await _until_forgotten(engine, "lost.1")
                    with pytest.raises(UnavailableError, match=r"-lost\.1 of Slurm ended is not known yet"):
                        await manager.inspect("lost.1")
                    await manager.launch(spec)
                    ends = _ends(manager)
                    assert (await anext(ends)).allocation_id == ALLOCATION
                report = await anext(ends)
                assert (report.allocation_id, report.lost) == ("lost.1", True)
                assert f"is CANCELLED (by {os.getuid()})" in report.reason
                await manager.close()

    scenario(body)


def _job(script: str) -> JobSpec:
    return JobSpec(name=f"run-{uuid.uuid4().hex}", script=script, output="/dev/null")


def _word(client: SlurmClient, spec: JobSpec) -> str:
    """The controller's word for a job; empty of one that it does not know."""
    job = asyncio.run(client.find(spec.name))
    return job.slurm_state if job else ""


def _forgotten(client: SlurmClient, spec: JobSpec) -> Job:
    """What accounting has of a job, once the controller has nothing of it."""
    wait_until(lambda: not _word(client, spec), what="to be forgotten", seconds=_WAIT_SECONDS, pause=0.2)

    def known() -> Job | None:
        try:
            return asyncio.run(client.accounting.find(spec.name))
        except UnavailableError:
            return None

    job = wait_until(known, what="its end", seconds=_WAIT_SECONDS, pause=0.2)
    assert job is not None
    return job


def _accounting(slurm: SlurmCluster) -> SlurmAccounting:
    assert slurm.accounting is not None
    return slurm.accounting


def _finding(slurm: SlurmCluster) -> Finding:
    """What `resolute doctor` says of accounting."""
    options = {"directory": "/none", "conf": slurm.environment["SLURM_CONF"]}
    (finding,) = check_slurm(EngineSettings(name="e", type="slurm", options=options, pools=()))
    assert finding.subject == "accounting of engine e"
    return finding


async def _launch_and_leave(engine: SlurmUnderTest, plane: ControlPlane) -> None:
    """Launches a run, at whose job nobody looks then."""
    manager = engine.open()
    await manager.launch(engine.spec(plane))
    await manager.close()


async def _until_forgotten(engine: SlurmUnderTest, allocation_id: str = ALLOCATION) -> None:
    async def forgotten() -> bool:
        return await engine.client.find(_name(engine, allocation_id)) is None

    await until(forgotten, "the controller to forget the job")


async def _ends(manager: SlurmEngine) -> AsyncIterator[ContainerReport]:
    async for event in manager.watch():
        if isinstance(event, ContainerReport) and event.state is ContainerState.ENDED:
            yield event


def _name(engine: SlurmUnderTest, allocation_id: str = ALLOCATION) -> str:
    return f"{engine.cluster}-{allocation_id}"
