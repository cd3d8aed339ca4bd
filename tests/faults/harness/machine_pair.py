"""Two machines of one cluster in PostgreSQL: one serves, the other stands by."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from faults.harness.fault_cluster import FaultCluster
from sqlalchemy.engine import make_url
from support.daemons.silent_proxy import SilentProxy, silent_proxy
from support.databases.postgres import crashable_postgres
from support.object_stores.s3 import own_s3_server
from support.waiting import wait_until

_SECONDS = 300.0
"""How long anything may take that has no limit of its own, on a machine that has much else to do."""


@dataclass
class Machine:
    """One home, and the process that serves it or stands by."""

    cluster: FaultCluster
    database: SilentProxy
    """Its way to the database."""
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts its process, and waits until that serves or stands by."""
        began = self.output.stat().st_size if self.output.exists() else 0
        self.process = self.cluster.start()
        wait_until(lambda: self._announced(began), seconds=_SECONDS, what=f"{self.cluster.home} to come up")

    @property
    def output(self) -> Path:
        """What its processes have written."""
        return self.cluster.home / "up.log"

    def _announced(self, began: int) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.output.read_text()[began:]
        return b"Resolute " in self.output.read_bytes()[began:]

    def serves(self) -> bool:
        """Whether its process serves the cluster."""
        return self.process is not None and self.cluster.serves(self.process.pid)

    def wait(self) -> int:
        """Waits until its process has ended, and returns its exit code."""
        assert self.process is not None
        return self.process.wait(_SECONDS)


@dataclass
class MachinePair:
    """What clients see of both, and which one serves."""

    front: FaultCluster
    """The cluster; its home is that of the machine that serves."""
    serving: Machine
    standby: Machine

    def follow(self) -> None:
        """Leads clients to the other machine, once it serves."""
        wait_until(self.standby.serves, seconds=_SECONDS, what="the other machine to serve")
        self.serving, self.standby = self.standby, self.serving
        self.front.home = self.serving.cluster.home

    def switch(self) -> None:
        """Lets the other machine serve, as an operator does, and what was left in its home be delivered."""
        assert self.serving.process is not None
        self.serving.process.terminate()
        former = self.serving
        self.follow()
        assert former.wait() == 0, former.output.read_text()[-2000:]
        former.start()
        runs = self.serving.cluster.home / "runs"
        wait_until(
            lambda: not runs.is_dir() or not any(runs.iterdir()),
            seconds=_SECONDS,
            what="what was left of runs to be delivered",
        )


@contextmanager
def machine_pair(home: Path, *, slots: int) -> Iterator[MachinePair]:
    """Serves a cluster from the first of two machines until the block ends.

    Args:
        home: Empty directory for everything.
        slots: Slots of each machine.
    """
    with ExitStack() as stack:
        server, store = (
            stack.enter_context(crashable_postgres()),
            stack.enter_context(own_s3_server(home / "store")),
        )
        url = make_url(server.new_database())
        machines = []
        for name in ("first", "second"):
            proxy = stack.enter_context(silent_proxy(f"{url.host}:{url.port}"))
            own = url.set(port=int(proxy.address.rpartition(":")[2])).render_as_string(hide_password=False)
            cluster = FaultCluster(home / name, slots=slots, database_url=own, standby=True, store=store)
            cluster.environment = store.variables()
            machines.append(Machine(cluster, proxy))
        first, second = machines
        front = replace(first.cluster, database_url=str(url), bucket=store.new_bucket())
        try:
            first.start()
            second.cluster.home.mkdir(mode=0o700)
            shutil.copy(first.cluster.home / "cluster.json", second.cluster.home)
            shutil.copytree(first.cluster.home / "data", second.cluster.home / "data")
            second.start()
            yield MachinePair(front, first, second)
        finally:
            for machine in machines:
                if machine.process is not None:
                    machine.process.terminate()
            for machine in machines:
                if machine.process is not None:
                    machine.wait()
