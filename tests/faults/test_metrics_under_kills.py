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
from faults.metric_processes import value_at
from support.killable import READER, KillableService, some_run

from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.rpc.channel import open_channel
from resolute.spool.batches import RunIdentity
from resolute.spool.delivery import ReportDelivery
from resolute.spool.reader import SpoolReader
from resolute.spool.sender import SpoolSender
from resolute_serving.context import TrialRun

_PROGRAM = str(Path(__file__).with_name("metric_processes.py"))
_LIVES = 4
"""Times that each of the three is killed."""
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
def test_kills_of_trainer_supervisor_and_service_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    generator, run, spool = random.Random(11), some_run(), tmp_path / "spool"
    spool.mkdir()
    with KillableService("metrics", tmp_path) as service:
        environment = _environment(service, run)
        expected = 0
        for _ in range(_LIVES):
            trainer = Trainer(spool, expected)
            supervisor = subprocess.Popen([sys.executable, _PROGRAM, "send", str(spool)], env=environment)
            trainer.await_steps(generator.randrange(300, 1500))
            service.kill()
            trainer.await_steps(generator.randrange(1500, 2500))
            service.start()
            time.sleep(generator.random() * 0.3)
            supervisor.kill()
            supervisor.wait()
            said = trainer.kill()
            # Between appending a report and saying so there is an instant in which the kill may come.
            expected = _last_in(spool) + 1
            assert expected - 1 in {said, said + 1}
        _drain(service, run, spool)
        _check(service, run, expected)


def _environment(service: KillableService, run: TrialRun) -> dict[str, str]:
    identity = {"trial_id": run.trial_id, "run": run.run, "experiment_id": run.experiment_id}
    return {
        **os.environ,
        "TEST_RUN": json.dumps(identity),
        "TEST_ADDRESS": service.address,
        "TEST_TOKEN": service._signer.trial(run, ttl=3600.0),
    }


def _last_in(spool: Path) -> int:
    newest = max(spool.glob("*.metrics"), key=lambda path: path.stat().st_mtime_ns)
    reader, last = SpoolReader(newest), -1
    while (chunk := reader.peek()).records:
        last = getattr(chunk.records[-1], "steps", -1)
        reader.take(chunk)
    reader.close()
    return last


def _drain(service: KillableService, run: TrialRun, spool: Path) -> None:
    token = service._signer.trial(run, ttl=3600.0)
    with open_channel(service.address, token=lambda: token) as channel:
        identity = RunIdentity(run.trial_id, run.run, run.experiment_id)
        sender = SpoolSender(spool, ReportDelivery.over(channel, identity))
        deadline = time.monotonic() + _DEADLINE
        while not sender.drained():
            assert time.monotonic() < deadline, "the spools are not drained"
            sender.pump()
        sender.close()


def _check(service: KillableService, run: TrialRun, count: int) -> None:
    with service.channel(READER) as channel:
        stub = MetricsServiceStub(channel)
        request = api.GetSeriesRequest(trial_id=run.trial_id, group="training", name="value")
        series = stub.GetSeries(request, timeout=10)
        assert list(series.steps) == list(range(count))
        assert list(series.values) == [value_at(step) for step in range(count)]
        summaries = stub.ListSummaries(
            api.ListSummariesRequest(trial_ids=[run.trial_id]), timeout=10
        ).summaries
        found = {one.name: (one.count, one.sum) for one in summaries}
        assert found["step"] == (count, float(sum(range(count))))
        assert found["value"][0] == count
