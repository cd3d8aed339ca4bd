"""How fast lines of logs become durable, beside SQLite alone.

    python benchmarks/logs/ingest.py [--lines N] [--json]

The service runs in a process of its own with the database settings of ``resolute up``; every batch is fsynced
before it is acknowledged. Measured in one run, so that the ratios hold on any machine:

- ``raw``: SQLite alone, without a network, one row a line in commits of 1000
- ``service``: ready-made batches of 8000 lines through one connection
- ``drain``: the backlog of a spool through sender and service, which parses ranks and severities on the way
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import Standalone, raw_sqlite, say, seconds, standalone
from resolute.api.logs.v1 import line_pb2
from resolute.api.logs.v1 import logs_service_pb2 as api
from resolute.api.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from resolute.contracts.spool.format import Line, Stdtype
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import LineDelivery
from resolute.spool.line_writer import LineWriter

_CREATE = (
    "CREATE TABLE lines (line_id INTEGER PRIMARY KEY, trial TEXT, run INTEGER, time REAL, level INTEGER, "
    "rank INTEGER, stdtype TEXT, message TEXT)"
)
_INSERT = "INSERT INTO lines (trial, run, time, level, rank, stdtype, message) VALUES (?, ?, ?, ?, ?, ?, ?)"
LEAST_LINES = 100_000
"""A second."""
_BATCH = 8000


@dataclass
class Rates:
    """Lines a second."""

    lines: int
    raw: float = 0.0
    service: float = 0.0
    drain: float = 0.0

    def describe(self) -> list[str]:
        """What a person reads."""
        return [
            f"{self.lines} lines of about {len(_text(0))} characters",
            f"raw      {self.raw:12,.0f} lines/s",
            f"service  {self.service:12,.0f} lines/s   {self.service / self.raw:6.3f} x raw",
            f"drain    {self.drain:12,.0f} lines/s   {self.drain / self.raw:6.3f} x raw",
        ]


def measure(lines: int) -> Rates:
    """Measures everything."""
    rates = Rates(lines)
    texts = [_text(number) for number in range(lines)]
    rates.raw = lines / _raw(texts)
    with standalone("logs") as service:
        rates.service = lines / _send(service, texts)
        rates.drain = lines / _drain(service, texts)
    return rates


def _text(number: int) -> str:
    return f"INFO: epoch {number // 1000} batch {number % 1000}: loss={1 / (number + 1):.6f}, 123.4 images/s"


def _raw(texts: list[str]) -> float:
    trial = "0" * 36
    rows = [(trial, 1, 1.7e9, 3, 0, "stdout", text) for text in texts]
    return raw_sqlite(_CREATE, _INSERT, (rows[first : first + 1000] for first in range(0, len(rows), 1000)))


def _send(service: Standalone, texts: list[str]) -> float:
    batches = [
        _batch(service, texts[first : first + _BATCH], first=first) for first in range(0, len(texts), _BATCH)
    ]
    with service.trial_channel() as channel:
        stub = LogsServiceStub(channel)

        def send() -> None:
            for batch in batches:
                stub.IngestLines(batch, timeout=30)

        return seconds(send)


def _batch(service: Standalone, texts: list[str], *, first: int) -> api.IngestLinesRequest:
    count = len(texts)
    return api.IngestLinesRequest(
        trial_id=service.run.trial_id,
        run=service.run.run,
        source="ready",
        experiment_id=service.run.experiment_id,
        first_sequence=first,
        lines=line_pb2.LineColumns(
            messages=texts,
            times=range(1_700_000_000_000_000_000, 1_700_000_000_000_000_000 + count),
            levels=[line_pb2.LEVEL_INFO] * count,
            ranks=[0] * count,
            writer_indexes=[0] * count,
            writers=[line_pb2.LineColumns.Writer(stdtype="stdout", origin="task")],
        ),
    )


def _drain(service: Standalone, texts: list[str]) -> float:
    spool = service.folder / "spool"
    spool.mkdir()
    writer = LineWriter(spool)
    writer.append_lines(Line(1.7e9, Stdtype.STDOUT, f"[rank=0] {text}".encode()) for text in texts)
    writer.close()
    run = service.run
    identity = RunIdentity(trial_id=run.trial_id, run=run.run, experiment_id=run.experiment_id)
    channel = service.trial_channel()
    sender = SpoolSender(spool, LineDelivery.over(channel, identity))

    def pump() -> None:
        while sender.pump():
            pass

    taken = seconds(pump)
    if not sender.drained():
        raise RuntimeError("the spool was not drained")
    sender.close()
    channel.close()
    return taken


def main() -> int:
    """Prints what was measured; returns 1 when the service is below its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=200_000, help="lines to send (default: 200000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rates = measure(options.lines)
    say(json.dumps(asdict(rates)) if options.json else "\n".join(rates.describe()))
    return 0 if rates.service >= LEAST_LINES else 1


if __name__ == "__main__":
    sys.exit(main())
