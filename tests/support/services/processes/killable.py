"""A service in a process of its own, to be killed without a chance to tidy up."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

import grpc
from support.ports import free_port

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.rpc.channel import open_channel
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, TrialRun, User

_TTL = 3600.0


@final
class ServiceProcess:
    """``python -m resolute_<name>`` on a database, always on the same port, while its block lasts.

    Args:
        name: The service.
        folder: Where its data lie.
        database_url: Its database; empty for an SQLite file in the folder.
    """

    def __init__(self, name: str, folder: Path, *, database_url: str = "") -> None:
        self.address = f"127.0.0.1:{free_port()}"
        cluster, key = str(uuid.uuid4()), folder / "key.pem"
        self._signer = TokenSigner(load_or_create_key(key), cluster_id=cluster, clock=SYSTEM_CLOCK)
        self._command = [sys.executable, "-m", f"resolute_{name}"]
        self._environment = {
            **os.environ,
            "RESOLUTE_CLUSTER_ID": cluster,
            "RESOLUTE_DATA_DIR": str(folder),
            "RESOLUTE_SIGNING_KEY_FILE": str(key),
            "RESOLUTE_PORT": self.address.rsplit(":", 1)[1],
            "RESOLUTE_LOG_LEVEL": "ERROR",
            **({"RESOLUTE_DATABASE_URL": database_url} if database_url else {}),
        }
        self._process: subprocess.Popen[str] | None = None
        subprocess.run([*self._command, "--upgrade"], env=self._environment, check=True)

    def __enter__(self) -> ServiceProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def token(self, run: TrialRun) -> str:
        """A token of a run."""
        return self._signer.trial(run, ttl=_TTL)

    def start(self) -> None:
        """Starts it and waits until it listens."""
        self._process = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert "listens on" in self._process.stdout.readline()

    def kill(self) -> None:
        """Ends it at once. Does nothing when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @contextmanager
    def channel(self, who: TrialRun | User) -> Iterator[grpc.Channel]:
        """A channel that speaks for a run or a person."""
        signer = self._signer
        token = signer.trial(who, ttl=_TTL) if isinstance(who, TrialRun) else signer.user(who, ttl=_TTL)
        with open_channel(self.address, token=lambda: token) as channel:
            yield channel


READER = User(name="ada", role=Role.VIEWER)


def some_run() -> TrialRun:
    """A run of a trial that nobody has heard of."""
    trial, experiment, allocation = (str(uuid.uuid4()) for _ in range(3))
    return TrialRun(
        trial_id=trial, run=1, experiment_id=experiment, allocation_id=allocation, workspace="default"
    )
