"""What benchmarks of services share: a service in its own process, and SQLite alone to compare with."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from resolute.contracts.clock import SYSTEM_CLOCK
from resolute.rpc.channel import open_channel
from resolute_serving.auth.signing_keys import load_or_create_key
from resolute_serving.auth.tokens import TokenSigner
from resolute_serving.context import Role, TrialRun, User

_HOUR = 3600.0


@dataclass(frozen=True)
class Standalone:
    """A service that listens, with the database settings of ``resolute up``."""

    address: str
    signer: TokenSigner
    run: TrialRun
    folder: Path

    def trial_channel(self) -> grpc.Channel:
        """A channel that speaks for the run."""
        token = self.signer.trial(self.run, ttl=_HOUR)
        return open_channel(self.address, token=lambda: token)

    def user_channel(self) -> grpc.Channel:
        """A channel that speaks for a person."""
        token = self.user_token()
        return open_channel(self.address, token=lambda: token)

    def user_token(self) -> str:
        """A token that speaks for a person."""
        return self.signer.user(User(name="bench", role=Role.ADMIN), ttl=_HOUR)


@contextmanager
def standalone(name: str) -> Iterator[Standalone]:
    """Runs ``python -m resolute_<name>`` on an empty SQLite database until the block ends."""
    with tempfile.TemporaryDirectory(prefix=f"resolute-bench-{name}-") as text:
        folder = Path(text)
        cluster = str(uuid.uuid4())
        key = folder / "key.pem"
        signer = TokenSigner(load_or_create_key(key), cluster_id=cluster, clock=SYSTEM_CLOCK)
        settings = {
            "RESOLUTE_CLUSTER_ID": cluster,
            "RESOLUTE_DATA_DIR": text,
            "RESOLUTE_SIGNING_KEY_FILE": str(key),
            "RESOLUTE_LOG_LEVEL": "WARNING",
        }
        command = [sys.executable, "-m", f"resolute_{name}"]
        environment = {**os.environ, **settings}
        subprocess.run([*command, "--upgrade"], env=environment, check=True)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip().rsplit(" ", 1)[-1]
            trial, experiment, allocation = (str(uuid.uuid4()) for _ in range(3))
            run = TrialRun(trial, 1, experiment, allocation, "default")
            yield Standalone(address, signer, run, folder)
        finally:
            process.terminate()
            process.communicate()


def raw_sqlite(create: str, insert: str, batches: Iterable[Sequence[Sequence[Any]]]) -> float:
    """Seconds that SQLite alone takes for batches of rows, each durable before the next."""
    with tempfile.TemporaryDirectory(prefix="resolute-bench-raw-") as text:
        link = sqlite3.connect(Path(text) / "raw.sqlite", isolation_level=None)
        link.execute("PRAGMA journal_mode=WAL")
        link.execute("PRAGMA synchronous=FULL")
        link.execute(create)

        def insert_all() -> None:
            for batch in batches:
                link.execute("BEGIN")
                link.executemany(insert, batch)
                link.execute("COMMIT")

        taken = seconds(insert_all)
        link.close()
        return taken


def seconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def say(text: str) -> None:
    """Prints a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
