"""What the client of Slurm promises, against a real Slurm of four nodes."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.daemons.slurm import NODES, SlurmCluster
from support.waiting import wait_until

from resolute.errors import DeadlineError, FailedPreconditionError, InvalidArgumentError, UnavailableError
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.jobs import Job, JobState
from resolute_engines.slurm.commands.runner import SlurmCommands
from resolute_engines.slurm.factory import commands_of
from resolute_engines.slurm.settings import SlurmEngineOptions

_WAITS = "#!/bin/sh\nexec sleep 600\n"
_WAIT_SECONDS = 120.0


@pytest.fixture
def commands(slurm: SlurmCluster) -> SlurmCommands:
    """Commands of the cluster."""
    return SlurmCommands(environment=slurm.environment, deadline_seconds=60.0)


@pytest.fixture
def client(commands: SlurmCommands) -> SlurmClient:
    """A client of the cluster."""
    return SlurmClient(commands)


@pytest.fixture
def spec(client: SlurmClient, tmp_path: Path) -> Iterator[JobSpec]:
    """A job of a fresh name that runs until it is ended, which it is after the test."""
    name = f"run-{uuid.uuid4().hex}"
    yield JobSpec(name=name, script=_WAITS, output=str(tmp_path / "output"))
    asyncio.run(client.cancel(name))
    wait_until(lambda: not asyncio.run(client.live(prefix=name)), what="the end of the job", seconds=120)


def test_one_name_is_one_job(client: SlurmClient, spec: JobSpec) -> None:
    first = asyncio.run(client.submit(spec))
    assert asyncio.run(client.submit(spec)).id == first.id
    assert [job.id for job in asyncio.run(client.live(prefix=spec.name))] == [first.id]


def test_submission_whose_answer_was_lost_is_found(
    client: SlurmClient, commands: SlurmCommands, spec: JobSpec, tmp_path: Path
) -> None:
    # As a link that breaks once Slurm has the job: what it answered never arrives.
    breaks = tmp_path / "sbatch"
    breaks.write_text(f'#!/bin/sh\n{shutil.which("sbatch")} "$@" >/dev/null\nexec sleep 600\n')
    breaks.chmod(0o700)
    path = f"{tmp_path}:{commands.environment['PATH']}"
    environment = {**commands.environment, "PATH": path}
    lossy = SlurmClient(replace(commands, environment=environment, deadline_seconds=5.0))
    with pytest.raises(DeadlineError, match="sbatch did not answer in 5 s"):
        asyncio.run(lossy.submit(spec))
    submitted = asyncio.run(client.submit(spec))
    assert [job.id for job in asyncio.run(client.live(prefix=spec.name))] == [submitted.id]


def test_late_second_submission_waits_and_is_cancelled_with_the_first(
    client: SlurmClient, commands: SlurmCommands, spec: JobSpec
) -> None:
    first = asyncio.run(client.submit(spec))
    late = ["sbatch", f"--job-name={spec.name}", "--dependency=singleton", "--output=/dev/null"]
    asyncio.run(commands.run(late, stdin=_WAITS.encode()))
    _until(client, spec, JobState.RUNNING)
    jobs = asyncio.run(client.live(prefix=spec.name))
    assert [(job.id == first.id, job.state) for job in jobs] == [
        (True, JobState.RUNNING),
        (False, JobState.QUEUED),
    ]
    asyncio.run(client.cancel(spec.name))
    wait_until(
        lambda: not asyncio.run(client.live(prefix=spec.name)), what="their end", seconds=_WAIT_SECONDS
    )


def test_job_of_two_nodes_starts_a_process_on_each(client: SlurmClient, spec: JobSpec) -> None:
    script = "#!/bin/sh\nsrun sh -c 'echo $SLURM_PROCID of $SLURM_NNODES'\nexit 3\n"
    asyncio.run(client.submit(replace(spec, script=script, nodes=2)))
    job = _until(client, spec, JobState.ENDED)
    assert (job.slurm_state, job.reason) == ("FAILED", "NonZeroExitCode")
    assert sorted(Path(spec.output).read_text().splitlines()) == ["0 of 2", "1 of 2"]


def test_of_the_control_planes_environment_jobs_have_what_says_whose_they_are(
    slurm: SlurmCluster, spec: JobSpec
) -> None:
    ours = {
        **slurm.environment,
        "USER": "mara",
        "HOME": "/home/mara",
        "SECRET_HERE": "1",
        "SSH_AUTH_SOCK": "/s",
    }
    client = SlurmClient(commands_of(SlurmEngineOptions.model_validate({"directory": "/shared"}), ours))
    script = "#!/bin/sh\nsrun sh -c 'echo $USER $HOME ${SECRET_HERE:-nothing} ${SSH_AUTH_SOCK:-nothing}'\n"
    asyncio.run(client.submit(replace(spec, script=script)))
    assert _until(client, spec, JobState.ENDED).slurm_state == "COMPLETED"
    assert Path(spec.output).read_text() == "mara /home/mara nothing nothing\n"


def test_job_that_never_fits_waits_with_the_reason_of_slurm(client: SlurmClient, spec: JobSpec) -> None:
    job = asyncio.run(client.submit(replace(spec, nodes=NODES + 1)))
    assert job.state is JobState.QUEUED
    wait_until(
        lambda: _found(client, spec).reason == "PartitionNodeLimit", what="a reason", seconds=_WAIT_SECONDS
    )


def test_refusal_has_the_reason_of_slurm(client: SlurmClient, spec: JobSpec) -> None:
    with pytest.raises(FailedPreconditionError, match=r"sbatch failed: .*invalid partition"):
        asyncio.run(client.submit(replace(spec, options=("--partition=none",))))
    assert asyncio.run(client.find(spec.name)) is None


@pytest.mark.parametrize("name", ["a|b", "two\nlines", "7|RUNNING|None|x", ""])
def test_other_jobs_of_the_user_may_have_any_name(
    client: SlurmClient, commands: SlurmCommands, spec: JobSpec, name: str
) -> None:
    submitted = asyncio.run(client.submit(spec))
    other = ["sbatch", "--parsable", f"--job-name={name}", "--hold", "--output=/dev/null"]
    number = asyncio.run(commands.run(other, stdin=_WAITS.encode())).strip()
    try:
        assert [job.id for job in asyncio.run(client.live(prefix=spec.name))] == [submitted.id]
    finally:
        asyncio.run(commands.run(["scancel", number]))


def test_controller_that_is_too_busy_to_answer_has_refused_nothing(
    slurm: SlurmCluster, client: SlurmClient, commands: SlurmCommands, spec: JobSpec, tmp_path: Path
) -> None:
    # The look before the submission finds nothing, so that the submission is what goes unheard.
    blind = tmp_path / "squeue"
    blind.write_text("#!/bin/sh\n")
    blind.chmod(0o700)
    path = f"{tmp_path}:{commands.environment['PATH']}"
    unheard = SlurmClient(replace(commands, environment={**commands.environment, "PATH": path}))

    async def ask() -> list[object]:
        asked = (client.find(spec.name), unheard.submit(spec))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    with slurm.controller_suspended():
        answers = asyncio.run(ask())
    assert [type(answer) for answer in answers] == [UnavailableError] * 2
    assert all("timed out on send/recv" in str(answer) for answer in answers)
    job = asyncio.run(client.submit(spec))
    _until(client, spec, JobState.RUNNING)
    assert _found(client, spec).id == job.id


def test_preempted_job_is_requeued_and_runs_again(client: SlurmClient, spec: JobSpec) -> None:
    asyncio.run(client.submit(replace(spec, nodes=NODES, options=("--requeue", "--exclusive"))))
    _until(client, spec, JobState.RUNNING)
    urgent = replace(spec, name=f"{spec.name}-u", nodes=NODES, options=("--partition=urgent", "--exclusive"))
    asyncio.run(client.submit(urgent))
    _until(client, urgent, JobState.RUNNING)
    # A name is looked up whole: the other job, whose name begins so, is not this one.
    assert _found(client, spec).state is JobState.QUEUED
    asyncio.run(client.cancel(urgent.name))


def test_jobs_go_on_while_the_controller_is_away(
    slurm: SlurmCluster, commands: SlurmCommands, client: SlurmClient, spec: JobSpec
) -> None:
    asyncio.run(client.submit(spec))
    job = _until(client, spec, JobState.RUNNING)
    slurm.stop_controller()
    try:
        hasty = SlurmClient(replace(commands, deadline_seconds=5.0))
        with pytest.raises(UnavailableError):
            asyncio.run(hasty.find(spec.name))
    finally:
        slurm.start_controller()
    wait_until(lambda: _answers(client), what="the controller", seconds=_WAIT_SECONDS, pause=0.2)
    assert _found(client, spec) == job


def test_dead_node_ends_its_jobs_with_that_reason(
    slurm: SlurmCluster, client: SlurmClient, spec: JobSpec
) -> None:
    asyncio.run(client.submit(replace(spec, options=("--nodelist=node3", "--no-requeue"))))
    _until(client, spec, JobState.RUNNING)
    slurm.kill("node3")
    try:
        job = _until(client, spec, JobState.ENDED)
        assert job.slurm_state == "NODE_FAIL"
        usable = [node.name for node in asyncio.run(client.nodes()) if node.usable]
        assert usable == ["node0", "node1", "node2"]
    finally:
        slurm.start_node(3)
    wait_until(
        lambda: all(node.usable for node in asyncio.run(client.nodes())),
        what="the node's return",
        seconds=_WAIT_SECONDS,
        pause=0.2,
    )


def test_cluster_without_accounting_is_asked_once_how_a_job_ended(
    commands: SlurmCommands, tmp_path: Path
) -> None:
    counted, calls = tmp_path / "sacct", tmp_path / "calls"
    counted.write_text(f'#!/bin/sh\necho call >> {calls}\nexec {shutil.which("sacct")} "$@"\n')
    counted.chmod(0o700)
    path = f"{tmp_path}:{commands.environment['PATH']}"
    client = SlurmClient(replace(commands, environment={**commands.environment, "PATH": path}))
    assert asyncio.run(client.accounting.find("run-1")) is None
    assert asyncio.run(client.accounting.find("run-2")) is None
    assert calls.read_text() == "call\n"
    assert not asyncio.run(client.accounting.kept())


def test_output_and_starts_of_commands_are_bounded(commands: SlurmCommands) -> None:
    with pytest.raises(FailedPreconditionError, match="printed more than 100000 bytes"):
        asyncio.run(replace(commands, output_bytes=100_000).run(["yes"]))
    with pytest.raises(UnavailableError, match="no-such-command cannot be started"):
        asyncio.run(commands.run(["no-such-command"]))
    with pytest.raises(InvalidArgumentError, match="cannot name a job"):
        asyncio.run(SlurmClient(commands).find("a,b"))


def _found(client: SlurmClient, spec: JobSpec) -> Job:
    job = asyncio.run(client.find(spec.name))
    assert job is not None
    return job


def _until(client: SlurmClient, spec: JobSpec, state: JobState) -> Job:
    wait_until(
        lambda: _found(client, spec).state is state,
        what=f"job {state.value}",
        seconds=_WAIT_SECONDS,
        pause=0.1,
    )
    return _found(client, spec)


def _answers(client: SlurmClient) -> bool:
    try:
        asyncio.run(client.nodes())
    except UnavailableError:
        return False
    return True
