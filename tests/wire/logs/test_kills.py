"""The service is killed at random instants while a spool is drained: each line arrives once and in order."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from support.services.processes.killable import READER, ServiceProcess, some_run

from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.client.connection.paging import all_items
from resolute.contracts.spool.format import Line, Stdtype
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import LineDelivery
from resolute.spool.line_writer import LineWriter

LINES = 8000
KILLS = 3


@pytest.mark.integration
def test_kills_lose_no_line_and_double_none(tmp_path: Path) -> None:
    run = some_run()
    spool = tmp_path / "spool"
    spool.mkdir()
    writer = LineWriter(spool)
    writer.append_lines(Line(1.0, Stdtype.STDOUT, f"line {number}".encode()) for number in range(LINES))
    writer.close()
    with ServiceProcess("logs", tmp_path) as service:
        generator = random.Random(11)
        with service.channel(run) as channel:
            identity = RunIdentity(run.trial_id, 1, run.experiment_id)
            sender = SpoolSender(spool, LineDelivery.over(channel, identity), jitter=lambda: 0.0)
            sender._batch = 16 << 10
            kills = 0
            while not sender.drained():
                killer = None
                if kills < KILLS:
                    kills += 1
                    killer = threading.Timer(generator.random() * 0.02, service.kill)
                    killer.start()
                sender.pump()
                sender._retry_at = 0.0
                if killer is not None:
                    killer.join()
                    service.start()
            sender.close()
        with service.channel(READER) as channel:
            request = api.ListLinesRequest(filter=line_pb2.LineFilter(trial_id=run.trial_id))
            found = all_items(LogsServiceStub(channel).ListLines, request, "lines")
            assert [line.message for line in found] == [f"line {number}" for number in range(LINES)]
