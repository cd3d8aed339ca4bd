"""Jobs of several ranks: in threads, which are quick, and in processes, which can die."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.ports import free_port

from resolute.core.distributed import DistributedContext

PROGRAM = Path(__file__).with_name("rank_program.py")
DEADLINE = 30.0


def numbers(rank: int, size: int, local_size: int) -> dict[str, int]:
    """The six numbers of a rank, with machines of equal size."""
    return {
        "rank": rank,
        "size": size,
        "local_rank": rank % local_size,
        "local_size": local_size,
        "cross_rank": rank // local_size,
        "cross_size": size // local_size,
    }


@dataclass
class Threads:
    """Runs ranks as threads of this process."""

    port: int = field(default_factory=free_port)

    def attempt(
        self,
        size: int,
        work: Callable[[DistributedContext], Any],
        *,
        local_size: int | None = None,
        options: Callable[[int], dict[str, Any]] | None = None,
    ) -> list[Any]:
        """What the work returned on each rank, or the exception that it raised."""
        outcomes: list[Any] = [None] * size

        def one(rank: int) -> None:
            given: dict[str, Any] = {"pull_port": self.port, "chief_ip": "localhost", "start_timeout": 10.0}
            given |= numbers(rank, size, local_size or size)
            given |= options(rank) if options else {}
            try:
                with DistributedContext(**given) as context:
                    outcomes[rank] = work(context)
            except Exception as error:  # noqa: BLE001 - handed to the test
                outcomes[rank] = error

        threads = [threading.Thread(target=one, args=(rank,), name=f"rank-{rank}") for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        assert not any(thread.is_alive() for thread in threads), "a rank hangs"
        return outcomes

    def __call__(self, size: int, work: Callable[[DistributedContext], Any], **how: Any) -> list[Any]:
        """What the work returned on each rank."""
        outcomes = self.attempt(size, work, **how)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return outcomes


@dataclass
class Processes:
    """Runs ranks as processes, each in a group of its own."""

    port: int = field(default_factory=free_port)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(
        self, scenario: str, size: int, *, local_size: int | None = None, only: int | None = None, **env: str
    ) -> list[subprocess.Popen[str]]:
        """Starts the ranks (only the first few, where asked) as torchrun would."""
        ranks = []
        for rank in range(size if only is None else only):
            place = numbers(rank, size, local_size or size)
            environ = os.environ | {
                "RANK": str(place["rank"]),
                "WORLD_SIZE": str(place["size"]),
                "LOCAL_RANK": str(place["local_rank"]),
                "LOCAL_WORLD_SIZE": str(place["local_size"]),
                "GROUP_RANK": str(place["cross_rank"]),
                "GROUP_WORLD_SIZE": str(place["cross_size"]),
                "DET_CHIEF_IP": "127.0.0.1",
                "RESOLUTE_COLLECTIVE_PORTS": f"{self.port},{self.port}",
                "RESOLUTE_COLLECTIVE_START_TIMEOUT": "20",
                **env,
            }
            ranks.append(
                subprocess.Popen(
                    [sys.executable, "-W", "error", str(PROGRAM), scenario],
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
        self.started += ranks
        return ranks

    def __call__(self, scenario: str, size: int, **how: Any) -> list[Any]:
        """What each rank reported; None from those that ended without a report."""
        ranks = self.start(scenario, size, **how)
        return [self.report(rank) for rank in ranks]

    @staticmethod
    def report(rank: "subprocess.Popen[str]") -> Any:
        """What a rank has to say in the end."""
        out, err = rank.communicate(timeout=DEADLINE)
        lines = out.splitlines()
        if not lines:
            assert rank.returncode != 0, err
            return None
        assert "Warning" not in err, err
        return json.loads(lines[-1])

    def stop(self) -> None:
        """Kills what is left, children included."""
        for rank in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(rank.pid, signal.SIGKILL)
            rank.communicate()


@pytest.fixture
def threads() -> Threads:
    return Threads()


@pytest.fixture
def processes() -> Iterator[Processes]:
    runner = Processes()
    yield runner
    runner.stop()
