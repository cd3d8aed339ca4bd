"""Trainer, supervisor and service are killed at random instants under load: every report arrives once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from faults.metrics.evidence import check, drain
from support.services.processes.killable import ServiceProcess, some_run
from support.suite.sampling import Sample

from resolute.spool.reader import SpoolReader
from resolute_serving.context import TrialRun

_PROGRAM = str(Path(__file__).with_name("programs.py"))
_DEADLINE = 60.0


@dataclass
class Trainer:
    """A process that reports, and what it said."""

    spool: Path
    first: int
    said: int = field(init=False)

    def __post_init__(self) -> None:
        self.said = self.first - 1
        command = [sys.executable, _PROGRAM, "train", str(self.spool), str(self.first)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._thread = threading.Thread(target=self._listen, name="listen")
        self._thread.start()

    def await_steps(self, count: int) -> None:
        """Waits until it has reported some more."""
        deadline = time.monotonic() + _DEADLINE
        while self.said < self.first + count:
            assert time.monotonic() < deadline, "the trainer does not report"
            time.sleep(0.005)

    def kill(self) -> int:
        """Ends it at once; gives the last step that it said."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        return self.said

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self.said = int(line)


@pytest.mark.integration
def test_kills_of_trainer_supervisor_and_service_lose_nothing_and_double_nothing(
    tmp_path: Path, sample: Sample
) -> None:
    generator, run, spool = random.Random(sample.number), some_run(), tmp_path / "spool"
    spool.mkdir()
    with ServiceProcess("metrics", tmp_path) as service:
        variables = environment(service, run)
        expected = 0
        # Each of the three is killed as often.
        for _ in range(sample.size(whole=4, part=2)):
            trainer = Trainer(spool, expected)
            supervisor = subprocess.Popen([sys.executable, _PROGRAM, "send", str(spool)], env=variables)
            trainer.await_steps(generator.randrange(300, 1500))
            service.kill()
            trainer.await_steps(generator.randrange(1500, 2500))
            service.start()
            time.sleep(generator.random() * 0.3)
            supervisor.kill()
            supervisor.wait()
            said = trainer.kill()
            # Between appending a report and saying so there is an instant in which the kill may come.
            expected = last_in(spool) + 1
            assert expected - 1 in {said, said + 1}
        drain(service, run, spool)
        check(service, run, expected)


def environment(service: ServiceProcess, run: TrialRun) -> dict[str, str]:
    """What a supervisor that sends must know."""
    identity = {"trial_id": run.trial_id, "run": run.run, "experiment_id": run.experiment_id}
    return {
        **os.environ,
        "TEST_RUN": json.dumps(identity),
        "TEST_ADDRESS": service.address,
        "TEST_TOKEN": service.token(run),
    }


def last_in(spool: Path, *, default: int = -1) -> int:
    """The last step in a spool; the default if it was sent and removed."""
    newest = max(spool.glob("*.metrics"), key=lambda path: path.stat().st_mtime_ns)
    reader, last = SpoolReader(newest), default
    while len(chunk := reader.peek()):
        last = getattr(list(chunk.records())[-1], "steps", -1)
        reader.take(chunk)
    reader.close()
    return last
