"""Slurm from another machine: a real Slurm behind a real sshd."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.daemons.slurm import NODES, SlurmCluster
from support.daemons.ssh import LoginServer, running_login
from support.engines.session import ALLOCATION, cleared, engine_session, scenario, seen
from support.engines.slurm import SlurmUnderTest
from support.waiting import wait_until

from resolute.errors import DeadlineError, FailedPreconditionError, UnavailableError
from resolute_engines.plugins import create_engine
from resolute_engines.protocol import ContainerState
from resolute_engines.slurm.client import JobSpec, SlurmClient
from resolute_engines.slurm.commands.login import LoginNode
from resolute_engines.slurm.commands.runner import SlurmCommands


@pytest.fixture(scope="module")
def server() -> Iterator[LoginServer]:
    """An sshd."""
    with running_login() as login:
        yield login


@pytest.fixture
def commands(slurm: SlurmCluster, server: LoginServer) -> SlurmCommands:
    """Commands there. What this process has of Slurm's settings stays here."""
    login = LoginNode(
        destination="login",
        config=str(server.config),
        variables={"SLURM_CONF": slurm.environment["SLURM_CONF"]},
    )
    return SlurmCommands(login=login, environment={"PATH": os.environ["PATH"]}, deadline_seconds=60.0)


def test_job_is_submitted_seen_signalled_and_cancelled_over_ssh(
    commands: SlurmCommands, tmp_path: Path
) -> None:
    client, output = SlurmClient(commands), tmp_path / "an output"
    spec = JobSpec(
        name=f"run-{uuid.uuid4().hex}",
        script="#!/bin/sh\ntrap 'echo told' USR1\necho \"it's $0\"\nwhile :; do sleep 0.1; done\n",
        output=str(output),
    )

    def printed(text: str) -> None:
        wait_until(lambda: output.exists() and text in output.read_text(), what=text, seconds=120)

    try:
        first = asyncio.run(client.submit(spec))
        assert asyncio.run(client.submit(spec)).id == first.id
        printed("it's /")
        asyncio.run(commands.run(["scancel", f"--name={spec.name}", "--full", "--signal=USR1"]))
        printed("told")
        assert len(asyncio.run(client.nodes())) == NODES
    finally:
        asyncio.run(client.cancel(spec.name))
    wait_until(lambda: not asyncio.run(client.live(prefix=spec.name)), what="its end", seconds=120)


def test_words_arrive_as_they_are(commands: SlurmCommands) -> None:
    words = ["a b", "$HOME", "it's; exit 3", "*", "", "-o"]
    assert asyncio.run(commands.run(["printf", r"%s\n", *words])).splitlines() == words
    assert asyncio.run(commands.run(["cat"], stdin=b"a\0b")) == "a\0b"


def test_faults_there_are_told_from_faults_on_the_way(commands: SlurmCommands, tmp_path: Path) -> None:
    spec = JobSpec(
        name=f"run-{uuid.uuid4().hex}",
        script="#!/bin/sh\n",
        output="/dev/null",
        options=("--partition=none",),
    )
    with pytest.raises(FailedPreconditionError, match=r"sbatch failed: .*invalid partition"):
        asyncio.run(SlurmClient(commands).submit(spec))
    with pytest.raises(UnavailableError, match=r"no-such failed: .*No such file"):
        asyncio.run(commands.run(["no-such"]))
    assert commands.login is not None
    for login, complaint in (
        (replace(commands.login, destination="ssh://login:1"), "ssh://login:1 cannot be reached: .*refused"),
        (replace(commands.login, destination="nobody@login"), "login cannot be reached: .*Permission denied"),
        (replace(commands.login, config=str(tmp_path / "none")), "login cannot be reached"),
    ):
        away = replace(commands, login=login)
        with pytest.raises(UnavailableError, match=complaint) as refused:
            asyncio.run(away.run(["squeue"]))
        assert "banner" not in str(refused.value)


def test_command_there_that_does_not_answer_has_a_deadline(commands: SlurmCommands) -> None:
    with pytest.raises(DeadlineError, match="sleep did not answer in 2 s"):
        asyncio.run(replace(commands, deadline_seconds=2.0).run(["sleep", "60"]))


def test_commands_may_share_one_login(commands: SlurmCommands, server: LoginServer, tmp_path: Path) -> None:
    config, socket = tmp_path / "config", server.directory / "shared"
    shared = f"ControlMaster auto\nControlPersist 10m\nControlPath {socket}\n"
    config.write_text(shared + server.config.read_text())
    assert commands.login is not None
    sharing = replace(commands, login=replace(commands.login, config=str(config)))
    try:
        first, second = (asyncio.run(sharing.run(["sh", "-c", "echo $PPID $SSH_CLIENT"])) for _ in range(2))
        # The same connection: its port is the same.
        assert first.split()[1:] == second.split()[1:]
        assert socket.is_socket()
    finally:
        stop = replace(commands, login=None)
        asyncio.run(stop.run(["ssh", "-F", str(config), "-O", "exit", "login"]))


def test_a_run_from_its_launch_to_its_end_by_the_settings(
    slurm: SlurmCluster, server: LoginServer, tmp_path: Path
) -> None:
    engine = SlurmUnderTest(slurm, tmp_path / "runs", login=server)

    async def body() -> None:
        with engine.control_plane("echo training; while [ ! -e go ]; do sleep 0.05; done; exit 3") as plane:
            async with cleared(engine), engine_session(engine) as session:
                await session.engine.launch(engine.spec(plane))
                await seen(plane, "training")
                assert await session.states() == [ContainerState.RUNNING]
                other = create_engine(*engine.opened_by)
                assert list(await other.leftovers()) == [ALLOCATION]
                await other.close()
                (tmp_path / "runs" / ALLOCATION / "0" / "work" / "go").touch()
                (report,) = await session.ended()
                assert report.exit is not None
                assert report.exit.exit_code == 3

    scenario(body)
