"""A whole cluster for end-to-end tests: `resolute up` in a home of its own, driven by the command line."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import pytest
from support.processes.commands import run_command

from resolute.client import Client
from resolute.client.connection.endpoint import MASTER_VARIABLES, TOKEN_VARIABLE
from resolute.client.connection.home import HOME_VARIABLE

T = TypeVar("T")
_BIN = Path(sys.executable).parent
_UP_SECONDS = 300.0
_KILL_SECONDS = 60.0
"""How long a start or a stop may take, on a machine that has much else to do."""


class Front(Protocol):
    """Stands in front of all clusters: their commands reach them by it alone."""

    def server_variables(self, home: Path) -> dict[str, str]:
        """More variables for what serves a home."""

    def client_variables(self, home: Path) -> dict[str, str]:
        """More variables for commands on a home."""

    def serve(self, home: Path) -> None:
        """Leads to the cluster of a home, which has started."""


@dataclass
class EmbeddedCluster:
    """One home, and the process that serves it."""

    front: ClassVar[Front | None] = None
    """What is between commands and clusters; None where commands find the cluster by its home."""

    home: Path
    """$RESOLUTE_HOME."""
    slots: int = 2
    """Slots that `up` is given."""
    environment: dict[str, str] = field(default_factory=dict)
    """More variables for `up` and for commands."""
    bin: Path = _BIN
    """Where its commands are; `det` is always this environment's."""

    def variables(self) -> dict[str, str]:
        """The environment of every command."""
        base = {k: v for k, v in os.environ.items() if not k.startswith(("DET_", "RESOLUTE_"))}
        return {
            **base,
            "RESOLUTE_HOME": str(self.home),
            "OMP_NUM_THREADS": "1",
            # Few tests ask by HTTP, and each start would take a quarter of a second longer.
            "RESOLUTE_NO_HTTP": "1",
            **(self.front.client_variables(self.home) if self.front else {}),
            **self.environment,
        }

    def up(self) -> None:
        """Starts the cluster and waits until it serves."""
        more = self.front.server_variables(self.home) if self.front else {}
        served = replace(self, environment={**self.environment, **more})
        served.run("resolute", "up", "--detach", "--slots", str(self.slots), timeout=_UP_SECONDS)
        if self.front:
            self.front.serve(self.home)

    def down(self) -> None:
        """Stops it, if it runs."""
        self.run("resolute", "down", timeout=_UP_SECONDS)

    def kill(self) -> None:
        """Ends the control plane as a crash would, and waits until it is gone."""
        # A process whose memory is gone may still hold its locks: this is readable once all of it has ended.
        process = os.pidfd_open(json.loads((self.home / "endpoint.json").read_text())["pid"])
        try:
            signal.pidfd_send_signal(process, signal.SIGKILL)
            assert select.select([process], [], [], _KILL_SECONDS)[0], "the kill took too long"
        finally:
            os.close(process)

    def run(
        self,
        *command: str,
        cwd: Path | None = None,
        check: bool = True,
        timeout: float = 60,
        typed: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command of the installed distribution and returns what it said."""
        program = (str(self.bin / command[0]), *command[1:])
        if command[0] == "det" or command[-1] == "--json":  # tests ask so often
            result = run_command(program, cwd=cwd, environment=self.variables(), timeout=timeout)
        else:
            result = subprocess.run(
                program,
                cwd=cwd,
                env=self.variables(),
                input=typed,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
            )
        if check and result.returncode != 0:
            raise AssertionError(
                f"{' '.join(command)} exited with {result.returncode}\n{result.stdout}\n{result.stderr}"
            )
        return result

    def det(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Runs `det`."""
        return self.run("det", *arguments, **options)

    def client(self) -> Client:
        """Opens a connection, for tests that ask often: each command takes half a second to start."""
        with pytest.MonkeyPatch.context() as environment:
            self.name_in(environment)
            return Client()

    def name_in(self, environment: pytest.MonkeyPatch) -> None:
        """Lets the client in this process find the cluster."""
        for name in (*MASTER_VARIABLES, TOKEN_VARIABLE):
            environment.delenv(name, raising=False)
        environment.setenv(HOME_VARIABLE, str(self.home))
        for name, value in (self.front.client_variables(self.home) if self.front else {}).items():
            environment.setenv(name, value)

    def json(self, *arguments: str) -> Any:
        """Runs `resolute … --json` and returns what it printed."""
        return json.loads(self.run("resolute", *arguments, "--json").stdout)


@contextmanager
def embedded(home: Path, *, slots: int = 2, **environment: str) -> Iterator[EmbeddedCluster]:
    """Serves a home until the block ends, and leaves nothing running."""
    cluster = EmbeddedCluster(home, slots=slots, environment=environment)
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()
