"""deploy/compose.yaml with a name, ports and volumes of its own, ended with all that it had."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from image_build.commands import ROOT, run

from compose_demo import engine
from compose_demo.images import STAND_INS, Images
from compose_demo.stages import STAGES

_FILES = (ROOT / "deploy/compose.yaml", STAND_INS / "compose.yaml")
_START_SECONDS = 300.0
_STOP_SECONDS = 120.0
_CALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
_TAIL_LINES = 30
_CLUSTER_LABEL = "resolute.cluster"


@dataclass(frozen=True)
class Ports:
    """Ports of the machine that the cluster has."""

    gateway: int
    page: int
    store: int

    @classmethod
    def free(cls, host: str) -> Ports:
        """Takes three free ones at an address."""
        with socket.socket() as first, socket.socket() as second, socket.socket() as third:
            taken = (first, second, third)
            for socket_ in taken:
                socket_.bind((host, 0))
            return cls(*(socket_.getsockname()[1] for socket_ in taken))


@dataclass(frozen=True)
class ComposeCluster:
    """A cluster of the compose file.

    Attributes:
        project: Name under which Compose has it.
        folder: Where logs and what clients trust are written.
        host: Address by which this machine, services and trials reach it.
        ports: Its ports.
        variables: The compose file's settings.
    """

    project: str
    folder: Path
    host: str
    ports: Ports
    variables: Mapping[str, str]

    @classmethod
    def of(
        cls, project: str, folder: Path, *, host: str, images: Images, socket: Path, runtime: Path
    ) -> ComposeCluster:
        """Settles ports and settings; starts nothing."""
        ports = Ports.free(host)
        variables = {
            "RESOLUTE_NAME": host,
            "RESOLUTE_BIND": host,
            "RESOLUTE_GATEWAY_PORT": str(ports.gateway),
            "RESOLUTE_PAGE_PORT": str(ports.page),
            "RESOLUTE_STORE_PORT": str(ports.store),
            "RESOLUTE_SOCKET": str(socket),
            "RESOLUTE_SOCKET_GROUP": "0",
            "RESOLUTE_RUNTIME": str(runtime),
            "RESOLUTE_SERVICES_IMAGE": images.services,
            "RESOLUTE_TRIAL_IMAGE": images.trial,
            "RESOLUTE_POSTGRES_IMAGE": images.stand_ins,
            "RESOLUTE_STORE_IMAGE": images.stand_ins,
        }
        return cls(project, folder, host, ports, variables)

    @property
    def page(self) -> str:
        """URL of the page."""
        return f"https://{self.host}:{self.ports.page}"

    @property
    def store(self) -> str:
        """URL of the object store."""
        return f"http://{self.host}:{self.ports.store}"

    def start(self) -> dict[str, str]:
        """Starts everything and waits until it serves; returns the variables by which clients reach it.

        Raises:
            SystemExit: It does not start.
        """
        deadline = time.monotonic() + _START_SECONDS
        for stage in STAGES:
            self._compose(["up", "--detach", "--no-deps", *stage.services], seconds=_START_SECONDS)
            for service in stage.ends:
                self._await_end(service)
        authority = self.folder / "authority.pem"
        authority.write_text(self._until(self._in("gateway", "cat", "/etc/resolute/authority.pem"), deadline))
        token = self._until(self._in("experiments", "resolute-services", "operator-token"), deadline).strip()
        reached = {
            "RESOLUTE_MASTER": f"{self.host}:{self.ports.gateway}",
            "RESOLUTE_TOKEN": token,
            "DET_MASTER_CERT_FILE": str(authority),
        }
        command = [str(Path(sys.executable).with_name("resolute")), "experiment", "list"]
        self._until(command, deadline, variables=reached)
        return reached

    def stop(self) -> None:
        """Ends everything that it or an earlier one of its name started, trials and volumes too."""
        if not self._has("ps", "--all") and not self._has("volume", "ls"):
            return
        cluster = _call(self._in("gateway", "cat", "/etc/resolute/cluster.env"))
        # Nothing is lost: the search has ended, or is given up.
        self._compose(["down", "--volumes", "--timeout", "2"], seconds=_STOP_SECONDS, check=False)
        _, _, number = cluster.stdout.strip().partition("RESOLUTE_CLUSTER_ID=")
        if left := self._has("volume", "ls"):
            run(["podman", "volume", "rm", "--force", *left], check=False)
        if number:
            engine.remove_runs(f"{_CLUSTER_LABEL}={number}")

    def keep_logs(self) -> Path:
        """Writes what each container wrote to a file; returns the folder."""
        logs = self.folder / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        names = self._has("ps", "--all")
        for name in names:
            with (logs / f"{name}.log").open("wb") as output:
                subprocess.run(
                    ["podman", "logs", name], stdout=output, stderr=output, check=False, timeout=_CALL_SECONDS
                )
        return logs

    def _has(self, *listing: str) -> list[str]:
        """Lists what Podman has of the project, by name."""
        label = f"--filter=label=io.podman.compose.project={self.project}"
        return run(
            ["podman", *listing, "--format={{.Names}}" if listing[0] == "ps" else "--format={{.Name}}", label]
        ).split()

    def _await_end(self, service: str) -> None:
        code = run(["podman", "wait", f"{self.project}_{service}_1"]).strip()
        if code != "0":
            raise SystemExit(f"{service} ended with {code}; its log says why")

    def _in(self, service: str, *command: str) -> list[str]:
        # Not podman-compose, which takes half a second more each time.
        return ["podman", "exec", f"{self.project}_{service}_1", *command]

    def _until(
        self, command: Sequence[str], deadline: float, *, variables: Mapping[str, str] | None = None
    ) -> str:
        """Runs a command until it succeeds; returns its output."""
        while True:
            done = _call(command, variables=variables)
            if done.returncode == 0:
                return done.stdout
            if time.monotonic() > deadline:
                output = "\n".join(done.stderr.strip().splitlines()[-5:])
                raise SystemExit(f"{' '.join(command)} did not succeed in {_START_SECONDS:.0f} s:\n{output}")
            time.sleep(_PAUSE_SECONDS)

    def _compose(self, arguments: Sequence[str], *, seconds: float, check: bool = True) -> None:
        program = Path(sys.executable).with_name("podman-compose")
        files = [f"--file={file}" for file in _FILES]
        with (self.folder / "compose.log").open("ab") as log:
            bounded = ["timeout", "--kill-after=10", str(seconds), str(program)]
            done = subprocess.run(
                [*bounded, f"--project-name={self.project}", *files, *arguments],
                env={**os.environ, **self.variables}, stdout=log, stderr=log, check=False,
            )  # fmt: skip
        if check and done.returncode != 0:
            output = (self.folder / "compose.log").read_text(errors="replace").splitlines()[-_TAIL_LINES:]
            raise SystemExit("\n".join([f"podman-compose {arguments[0]} failed:", *output]))


def _call(
    command: Sequence[str], *, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command; one that takes too long has failed."""
    return subprocess.run(
        ["timeout", str(_CALL_SECONDS), *command],
        env={**os.environ, **(variables or {})}, capture_output=True, text=True, check=False,
    )  # fmt: skip
