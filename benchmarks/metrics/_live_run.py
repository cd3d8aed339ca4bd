"""A trial that reports as fast as it can, and the supervisor that ships what it reports.

Started by ``beside_mlflow.py`` as ``_live_run.py supervise ADDRESS FOLDER REPORTS``, with the run as JSON in
RESOLUTE_BENCH_RUN and its token in RESOLUTE_BENCH_TOKEN. Prints ``ready``, waits for a line on stdin, and
prints one line of JSON once every report is durable. The trainer is a process of its own, as on a cluster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

NAMES = [f"metric_{number}" for number in range(10)]
_DRAIN_TIMEOUT = 600.0


def train(folder: Path, reports: int) -> None:
    """Reports through the Core API's own context."""
    from resolute.core.reporting.train import TrainContext
    from resolute.core.reporting.trial_record import LocalTrialRecord
    from resolute.core.tensorboard import LocalTensorboard
    from resolute.spool.report_writer import ReportWriter

    writer = ReportWriter(folder)
    context = TrainContext(reporter=writer, record=LocalTrialRecord(), tensorboard=LocalTensorboard())
    _say("ready")
    sys.stdin.readline()
    spent = []
    for step in range(reports):
        metrics = dict.fromkeys(NAMES, step * 0.5)
        began = time.perf_counter_ns()
        context.report_training_metrics(steps_completed=step, metrics=metrics)
        spent.append(time.perf_counter_ns() - began)
    writer.close()
    _say(json.dumps({"call_us": statistics.median(spent) / 1000}))


def supervise(address: str, folder: Path, reports: int) -> None:
    """Runs a trainer and sends what it reports while it continues."""
    from resolute.rpc.channel import open_channel
    from resolute.spool.delivery.requests import RunIdentity
    from resolute.spool.delivery.sender import SpoolSender
    from resolute.spool.delivery.sender_thread import SenderThread
    from resolute.spool.delivery.services import ReportDelivery

    identity = RunIdentity(**json.loads(os.environ["RESOLUTE_BENCH_RUN"]))
    token = os.environ["RESOLUTE_BENCH_TOKEN"]
    command = [sys.executable, __file__, "train", str(folder), str(reports)]
    trainer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert trainer.stdin is not None
    assert trainer.stdout is not None
    trainer.stdout.readline()
    with open_channel(address, token=lambda: token) as channel:
        thread = SenderThread(SpoolSender(folder, ReportDelivery.over(channel, identity)), name="sender")
        _say("ready")
        sys.stdin.readline()
        began = time.time()
        thread.start()
        trainer.stdin.write("go\n")
        trainer.stdin.flush()
        answer = json.loads(trainer.stdout.readline())
        if not thread.drain(_DRAIN_TIMEOUT):
            raise RuntimeError("the spool was not drained")
        ended = time.time()
        thread.stop()
    trainer.wait()
    _say(json.dumps({**answer, "began": began, "ended": ended}))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        supervise(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
