"""Trials of several ranks, as tests of launch layers drive and watch them."""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.embedded import EmbeddedCluster, eventually

DISTRIBUTED = Path(__file__).parents[2] / "examples" / "distributed"
_STEPS = re.compile(r"(\d+)")


@dataclass(frozen=True)
class WorldTrial:
    """The only trial of an experiment."""

    cluster: EmbeddedCluster
    experiment: str
    """Number of its experiment."""

    @classmethod
    def create(cls, cluster: EmbeddedCluster, config: str, *settings: str) -> WorldTrial:
        """Submits a config of the example with some keys set."""
        options = [word for setting in settings for word in ("--config", setting)]
        said = cluster.det("e", "create", config, ".", *options, cwd=DISTRIBUTED).stdout
        found = re.search(r"Created experiment (\d+)", said)
        assert found, said
        return cls(cluster, found[1])

    def describe(self) -> Any:
        """What `det e describe --metrics` tells."""
        (description,) = self.cluster.json("e", "describe", self.experiment, "--metrics")
        return description

    @property
    def number(self) -> str:
        """Number of the trial."""
        return str(self._trial["id"])

    @property
    def restarts(self) -> int:
        """How often it was started again after a failure."""
        return int(self._trial["restarts"])

    @property
    def _trial(self) -> Any:
        return self.describe()["trials"][0]["trial"]

    def reported(self, group: str) -> list[int]:
        """The steps of its reports."""
        return [
            report["steps_completed"] for report in self.describe()["metrics"] if report["group"] == group
        ]

    def wait_for(self, state: str, *, timeout: float = 120) -> None:
        """Waits until the experiment is in a state; an end in another fails with the log."""

        def there() -> bool:
            now = self.describe()["experiment"]["state"]
            ended = {"COMPLETED", "ERROR", "CANCELED"} - {state}
            assert now not in ended, f"the experiment ended as {now}\n{self.log()}"
            return bool(now == state)

        eventually(there, what=f"experiment {self.experiment} to be {state}", timeout=timeout)

    def wait_for_step(self, step: int) -> None:
        """Waits until it has reported at least so many steps."""
        eventually(lambda: max(self._steps(), default=0) >= step, what=f"step {step}", timeout=120)

    def _steps(self) -> list[int]:
        description = self.describe()
        return [report["steps_completed"] for report in description["metrics"]]

    def log(self, rank: int | None = None) -> str:
        """Its log, of one rank or of all."""
        options = () if rank is None else ("--rank-id", str(rank))
        return self.cluster.det("t", "logs", self.number, *options).stdout

    def steps_said(self, words: str) -> list[int]:
        """The steps that follow some words in the log, in the order of the lines."""
        return [int(found) for found in re.findall(rf"{re.escape(words)} (\d+)", self.log())]

    def kill_rank(self, rank: int, *, script: str = "train.py") -> None:
        """Ends the process of one rank as a crash of its machine would."""
        (pid,) = eventually(lambda: _ranks(self.cluster.home, rank, script), what=f"rank {rank}")
        os.kill(pid, signal.SIGKILL)


def _ranks(home: Path, rank: int, script: str) -> list[int]:
    """Processes that run a script as a rank, in a run of a home."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = any(line.startswith(f"RESOLUTE_RUN_DIR={home}/".encode()) for line in environment)
        is_rank = any(f"{name}={rank}".encode() in environment for name in ("RANK", "HOROVOD_RANK"))
        # A script's own process has it as its second word; launchers and wrappers have it further back.
        if ours and is_rank and len(words) > 1 and words[1] == script.encode():
            found.append(int(entry.name))
    return found
