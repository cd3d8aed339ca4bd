"""The cluster that is attacked: on files of its home, or on PostgreSQL and an object store."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from faults.harness.engines.engine import FaultEngine, Place
from faults.harness.engines.local import LocalEngine
from support.clusters.embedded import EmbeddedCluster
from support.databases.postgres import CrashablePostgres, crashable_postgres
from support.object_stores.s3 import S3Server, own_s3_server
from support.ports import free_port

from resolute.client.connection.home import Home
from resolute_embedded.home.state_directory import StateDirectory
from resolute_engines.settings import FILE_NAME

_START_SECONDS = 300.0
"""How long a control plane may take to start, on a machine that has much else to do."""


@dataclass
class FaultCluster(EmbeddedCluster):
    """A home, where it keeps its data, and what of that can be killed."""

    postgres: CrashablePostgres | None = None
    """The server of its databases; None for SQLite files in the home."""
    database_url: str = ""
    """The database in that server, as the home reaches it."""
    standby: bool = False
    """Whether another home may be served from that database."""
    store: S3Server | None = None
    """The server of its checkpoints; None for directories in the home."""
    bucket: str = ""
    """Their bucket."""
    engine: FaultEngine = field(default_factory=LocalEngine)
    """Where its trials run."""
    remote_port: int = 0
    """Port of the services for an engine elsewhere; zero for none."""

    def up(self) -> None:
        """Starts the control plane and waits until it serves.

        Raises:
            AssertionError: It did not start; it may have been killed.
        """
        process = self.start()
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if self.serves(process.pid):
                # It outlives this object on purpose.
                process.returncode = 0
                return
            time.sleep(0.05)
        raise AssertionError(
            f"the control plane did not start:\n{(self.home / 'up.log').read_text()[-2000:]}"
        )

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the control plane."""
        command = ["resolute_embedded", "--slots", str(self.slots), *(["--standby"] if self.standby else [])]
        if self.engine.host:
            command += [
                "--host",
                self.engine.host,
                "--remote-port",
                str(self.remote_port),
                "--tls-self-signed",
            ]
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.database_url:
            StateDirectory(Home(self.home)).databases.move_to(self.database_url)
        with (self.home / "up.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *command],
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def serves(self, pid: int) -> bool:
        """Whether a process is the control plane and has begun to serve."""
        endpoint = self.home / "endpoint.json"
        return endpoint.exists() and f'"pid": {pid}' in endpoint.read_text()

    @property
    def place(self) -> Place:
        """Where it is, and what its trials read and write."""
        above = self.home.parent
        return Place(
            home=self.home,
            evidence=above / "evidence",
            checkpoints=above / "checkpoints",
            port=self.remote_port,
        )

    def config(self) -> Mapping[str, Any]:
        """What a config wants so that trials run in its engine and store checkpoints where it looks."""
        if self.store is None:
            return self.engine.config(self.place)
        stored = {"type": "s3", "bucket": self.bucket, "endpoint_url": self.store.endpoint_url}
        return {**self.engine.config(self.place), "checkpoint_storage": stored}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Asks the database of the experiments service, past the service."""
        if self.database_url:
            options = {"options": "-csearch_path=experiments"}
            engine = sa.create_engine(self.database_url, connect_args=options)
        else:
            engine = sa.create_engine(
                f"sqlite:///file:{self.home}/databases/experiments.sqlite?mode=ro&uri=true"
            )
        try:
            with engine.connect() as connection:
                return [tuple(row) for row in connection.execute(sa.text(query))]
        finally:
            engine.dispose()


@contextmanager
def fault_cluster(
    home: Path, *, slots: int, services_apart: bool, engine: FaultEngine
) -> Iterator[FaultCluster]:
    """Serves a home until the block ends.

    Args:
        home: Empty directory for everything.
        slots: Slots of the cluster.
        services_apart: Whether it keeps its data in PostgreSQL and an object store.
        engine: Where its trials run; its daemons are up.
    """
    with ExitStack() as stack:
        cluster = FaultCluster(home / "h", slots=slots, engine=engine, remote_port=free_port())
        cluster.environment = dict(engine.variables)
        if services_apart:
            cluster.postgres = stack.enter_context(crashable_postgres())
            cluster.database_url = cluster.postgres.new_database()
            cluster.store = stack.enter_context(own_s3_server(home / "store"))
            cluster.bucket = cluster.store.new_bucket()
            cluster.environment |= cluster.store.variables()
        if settings := engine.settings(cluster.place):
            cluster.place.prepare()
            cluster.environment["RESOLUTE_CHECKPOINTS_ROOTS"] = str(cluster.place.checkpoints)
            # JSON is YAML.
            (cluster.home / FILE_NAME).write_text(json.dumps(settings))
        cluster.up()
        try:
            yield cluster
        finally:
            cluster.down()
