"""Processes to be killed while metrics flow: a trainer that reports, and a supervisor that sends.

    python programs.py train SPOOL FIRST
    python programs.py send SPOOL

The trainer reports from step FIRST on, forever, and says each step on stdout once it was reported. The
supervisor sends what is in SPOOL, forever; the run and its token are in the environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from resolute.rpc.channel import open_channel
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.report_writer import ReportWriter

_PAUSE = 0.0005
"""Seconds between reports: what several lives report must fit into one response."""


def train(spool: Path, first: int) -> None:
    """Reports; a step that was said on stdout was reported before."""
    writer = ReportWriter(spool)
    step = first
    while True:
        writer.report("training", step, {"value": value_at(step), "step": step})
        os.write(1, b"%d\n" % step)
        step += 1
        time.sleep(_PAUSE)


def send(spool: Path) -> None:
    """Sends as a supervisor does."""
    identity = RunIdentity(**json.loads(os.environ["TEST_RUN"]))
    with open_channel(os.environ["TEST_ADDRESS"], token=lambda: os.environ["TEST_TOKEN"]) as channel:
        sender = SpoolSender(spool, ReportDelivery.over(channel, identity), jitter=lambda: 0.0)
        while True:
            if not sender.pump():
                time.sleep(0.01)


def value_at(step: int) -> float:
    """What is reported at a step: no two are alike."""
    return (step * 2654435761 % 2**32) / 2**16


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        send(Path(sys.argv[2]))
