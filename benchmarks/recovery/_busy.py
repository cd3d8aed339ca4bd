"""A cluster with trials that report all the time, for the benchmarks of this folder."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolute.client import Client

TRIALS = 4
_SCRIPT = """
import time
import determined as det

with det.core.init() as core:
    step = 0
    while not core.preempt.should_preempt():
        step += 1
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        print("step", step)
        time.sleep(0.005)
"""
_CONFIG = {
    "entrypoint": "python3 train.py",
    "searcher": {"name": "single", "metric": "loss", "max_length": 1},
}
_DEADLINE = 120.0


@dataclass(frozen=True)
class BusyCluster:
    """A home with its cluster."""

    home: Path

    def resolute(self, *arguments: str) -> None:
        """Runs a command."""
        program = str(Path(sys.executable).with_name("resolute"))
        subprocess.run([program, *arguments], env=self._environment(), check=True, stdout=subprocess.DEVNULL)

    def submit(self) -> None:
        """Starts the trials, and returns when each of them has reported."""
        code = self.home / "code"
        code.mkdir()
        (code / "train.py").write_text(_SCRIPT)
        os.environ["RESOLUTE_HOME"] = str(self.home)
        with Client() as client:
            for number in range(TRIALS):
                client.create_experiment({**_CONFIG, "name": f"busy-{number}"}, str(code))
        self.wait(lambda: len(self.reported_after(0.0)) == TRIALS)

    def kill_trials(self) -> None:
        """Ends the trials, and returns when they have ended."""
        with Client() as client:
            for number in range(1, TRIALS + 1):
                experiment = client.get_experiment(number)
                experiment.kill()
                experiment.wait(interval=0.2)

    def kill(self) -> None:
        """Ends the control plane as a crash would."""
        os.kill(json.loads((self.home / "endpoint.json").read_text())["pid"], signal.SIGKILL)

    def reported_after(self, moment: float) -> list[float]:
        """When trials made their latest stored reports; only of trials that reported after a moment."""
        path = self.home / "databases" / "metrics.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            query = "SELECT max(last_time) FROM streams GROUP BY trial_key HAVING max(last_time) > ?"
            return [time for (time,) in connection.execute(query, (moment,))]

    def wait(self, condition: Callable[[], bool]) -> None:
        """Waits until something holds."""
        deadline = time.monotonic() + _DEADLINE
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"waited {_DEADLINE:.0f} s in vain; look into {self.home}/up.log")
            time.sleep(0.01)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "RESOLUTE_HOME": str(self.home), "OMP_NUM_THREADS": "1"}


@contextmanager
def busy_cluster() -> Iterator[BusyCluster]:
    """Serves an empty home with a slot for each trial until the block ends."""
    with tempfile.TemporaryDirectory(prefix="resolute-bench-recovery-") as folder:
        cluster = BusyCluster(Path(folder) / "home")
        cluster.resolute("up", "--detach", "--slots", str(TRIALS))
        try:
            yield cluster
        finally:
            cluster.resolute("down")
