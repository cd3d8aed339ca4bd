"""A gateway in a process of its own, which can be killed, made to stand still, and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid

from support.ports import free_port
from support.processes.suspension import suspend

SERVICES = ("experiments", "searcher", "metrics", "logs", "checkpoints", "preemption")


class GatewayProcess:
    """A gateway that listens on the same ports after each start."""

    def __init__(self, services: str, *, checkpoints: str = "") -> None:
        """Prepares one.

        Args:
            services: ``host:port`` where all services are.
            checkpoints: Where that service is, if elsewhere.
        """
        addresses = {f"RESOLUTE_{name.upper()}_ADDRESS": services for name in SERVICES}
        addresses["RESOLUTE_CHECKPOINTS_ADDRESS"] = checkpoints or services
        port, http_port = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        """Where it listens for gRPC."""
        self.url = f"http://127.0.0.1:{http_port}"
        """Where it listens for HTTP."""
        self._environment = {
            **os.environ,
            **addresses,
            "RESOLUTE_CLUSTER_ID": str(uuid.uuid4()),
            "RESOLUTE_PORT": str(port),
            "RESOLUTE_HTTP_PORT": str(http_port),
        }
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it and waits until it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "resolute_gateway"],
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        assert said.startswith(f"gateway listens on {self.address}"), said

    def stand_still(self) -> None:
        """Keeps it from doing anything, while its ports and connections stay open."""
        if self._process is not None:
            suspend(self._process.pid)

    def kill(self) -> None:
        """Ends it at once; does nothing where it does not run."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.communicate()
            self._process = None
