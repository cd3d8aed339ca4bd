"""Separate services, as their units say, on PostgreSQL behind the gateway, for benchmarks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import grpc
import psutil
from deployment.test_services_apart import deployed, start
from deployment.units import UnitProcess, variables_of
from support.databases.postgres import new_postgres

from benchmarks.embedded import processor_seconds_of
from resolute.contracts.calls.tls import ClientTls
from resolute.rpc.channel import open_channel


@dataclass(frozen=True)
class Apart:
    """Services that listen, over TLS."""

    address: str
    """``host:port`` of the gateway for people."""
    runs_address: str
    """``host:port`` of the gateway for runs."""
    authority: Path
    """Who signed its certificate."""
    units: Mapping[str, UnitProcess]
    token_file: Path

    def operator(self) -> grpc.Channel:
        """Opens a channel that speaks for an administrator."""
        token = self.token_file.read_text().strip()
        return open_channel(
            self.address, token=lambda: token, tls=ClientTls(authority=self.authority.read_bytes())
        )

    def bare_channel(self) -> grpc.Channel:
        """Opens a channel whose calls bring their own token."""
        return grpc.secure_channel(self.address, grpc.ssl_channel_credentials(self.authority.read_bytes()))

    @property
    def processes(self) -> list[psutil.Process]:
        """Those of the services and of the gateway."""
        return [psutil.Process(unit.process.pid) for unit in self.units.values() if unit.process]

    def processor_seconds(self) -> float:
        """Processor time of all of them so far; PostgreSQL's is not in it."""
        return sum(processor_seconds_of(process.pid) for process in self.processes)


@contextmanager
def apart(folder: Path, *, variables: Mapping[str, str] | None = None) -> Iterator[Apart]:
    """Runs the services until the block ends.

    Args:
        folder: An empty directory.
        variables: More of the environment of the experiments service.
    """
    with new_postgres() as url, deployed(folder, url) as deployment:
        with (folder / "etc/experiments.env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in (variables or {}).items())
        deployment.run(deployment.page_script(number=0))
        for unit in deployment.units:
            # One after the other: their imports would hold each other up.
            start(deployment, unit)
        (address,) = re.findall(r"RESOLUTE_MASTER=(\S+)", deployment.page_script(number=1))
        runs_address = variables_of(folder / "etc/experiments.env")["RESOLUTE_ADVERTISED_ADDRESS"]
        authority, token = folder / "etc/authority.pem", folder / "var/operator-token"
        yield Apart(address, runs_address, authority, deployment.units, token)
