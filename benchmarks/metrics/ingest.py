"""How fast reports of ten metrics become durable, beside SQLite alone.

    python benchmarks/metrics/ingest.py [--reports N] [--json]

The service runs in a process of its own with the database settings of ``resolute up``; every batch is fsynced
before it is acknowledged. Measured in one run, so that the ratios hold on any machine:

- ``raw``: SQLite alone, without a network, one row a report in commits of 1000
- ``call``: ``report`` on the training thread, which appends to the spool
- ``drain``: the backlog of that spool through sender and service
- ``service``: ready-made batches through one connection, which leaves out reading the spool and packing
- ``single``: one report a call, as a live trial that reports slowly
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import Standalone, raw_sqlite, say, seconds, standalone
from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.spool.delivery.requests import RunIdentity
from resolute.spool.delivery.sender import SpoolSender
from resolute.spool.delivery.services import ReportDelivery
from resolute.spool.report_writer import ReportWriter

NAMES = [f"metric_{number}" for number in range(10)]
_CREATE = (
    "CREATE TABLE reports (trial TEXT, run INTEGER, sequence INTEGER, name TEXT, steps INTEGER, time REAL, "
    + ", ".join(f"{name} REAL" for name in NAMES)
    + ", PRIMARY KEY (trial, run, sequence))"
)
_INSERT = f"INSERT INTO reports VALUES ({', '.join('?' * (6 + len(NAMES)))})"


MOST_CALL_US = 10.0


@dataclass
class Rates:
    """Reports a second, and what a call costs."""

    reports: int
    raw: float = 0.0
    call_us: float = 0.0
    drain: float = 0.0
    service: float = 0.0
    single: float = 0.0

    def lines(self) -> list[str]:
        """What a person reads."""
        found = [
            f"{self.reports} reports of {len(NAMES)} metrics",
            f"raw      {self.raw:12,.0f} reports/s   {self.raw * len(NAMES):14,.0f} values/s",
        ]
        for name in ("drain", "service", "single"):
            rate = getattr(self, name)
            values = rate * len(NAMES)
            found.append(
                f"{name:8} {rate:12,.0f} reports/s   {values:14,.0f} values/s   {rate / self.raw:8.3f} x raw"
            )
        return [*found, f"call     {self.call_us:12.1f} us, median"]


def measure(reports: int) -> Rates:
    """Measures everything."""
    rates = Rates(reports)
    values = np.random.default_rng(0).normal(size=(reports, len(NAMES)))
    rates.raw = reports / _raw(values)
    with standalone("metrics") as service:
        spool = service.folder / "spool"
        spool.mkdir()
        rates.call_us = _write(spool, values)
        rates.drain = reports / _drain(service, spool)
        rates.service = reports / _send(service, values)
        count = min(reports, 500)
        rates.single = count / _send_one_by_one(service, values[:count])
    return rates


def _raw(values: np.ndarray) -> float:
    trial = "0" * 36
    rows = [(trial, 1, number, "training", number, 1.7e9, *row) for number, row in enumerate(values.tolist())]
    return raw_sqlite(_CREATE, _INSERT, (rows[first : first + 1000] for first in range(0, len(rows), 1000)))


def _write(spool: Path, values: np.ndarray) -> float:
    writer = ReportWriter(spool)
    taken = [time.perf_counter_ns()]
    for step, row in enumerate(values.tolist()):
        metrics = dict(zip(NAMES, row, strict=True))
        began = time.perf_counter_ns()
        writer.report("training", step, metrics)
        taken += (began, time.perf_counter_ns())
    writer.close()
    spent = [after - before for before, after in zip(taken[1::2], taken[2::2], strict=True)]
    return statistics.median(spent) / 1000


def _drain(service: Standalone, spool: Path) -> float:
    run = service.run
    identity = RunIdentity(trial_id=run.trial_id, run=run.run, experiment_id=run.experiment_id)
    channel = service.trial_channel()
    sender = SpoolSender(spool, ReportDelivery.over(channel, identity))

    def pump() -> None:
        while sender.pump():
            pass

    taken = seconds(pump)
    if not sender.drained():
        raise RuntimeError("the spool was not drained")
    sender.close()
    channel.close()
    return taken


def _batch(service: Standalone, values: np.ndarray, *, source: str, first: int) -> api.IngestReportsRequest:
    rows = range(first, first + len(values))
    block = report_pb2.ReportBlock(
        group="service",
        names=NAMES,
        sequences=rows,
        steps=rows,
        times=[1.7e9 + row for row in rows],
        values=values.ravel().tolist(),
    )
    return api.IngestReportsRequest(
        trial_id=service.run.trial_id,
        run=service.run.run,
        source=source,
        experiment_id=service.run.experiment_id,
        first_sequence=first,
        count=len(values),
        blocks=[block],
    )


def _send(service: Standalone, values: np.ndarray) -> float:
    bounds = [*range(0, len(values), 8000), len(values)]
    batches = [
        _batch(service, values[first:last], source="ready", first=first) for first, last in pairwise(bounds)
    ]
    return _ingest(service, batches)


def _send_one_by_one(service: Standalone, values: np.ndarray) -> float:
    # At steps of their own: reports of the same run and group must not contradict each other.
    batches = [_batch(service, values[row : row + 1], source="live", first=row) for row in range(len(values))]
    for batch in batches:
        batch.blocks[0].group = "live"
    return _ingest(service, batches)


def _ingest(service: Standalone, batches: Sequence[api.IngestReportsRequest]) -> float:
    with service.trial_channel() as channel:
        stub = MetricsServiceStub(channel)

        def send() -> None:
            for batch in batches:
                response = stub.IngestReports(batch, timeout=30)
                if response.refusals:
                    raise RuntimeError(response.refusals[0].message)

        return seconds(send)


def main() -> int:
    """Prints what was measured; returns 1 when a report takes too long to make."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=200_000, help="reports to send (default: 200000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rates = measure(options.reports)
    say(json.dumps(asdict(rates)) if options.json else "\n".join(rates.lines()))
    return 0 if rates.call_us <= MOST_CALL_US else 1


if __name__ == "__main__":
    sys.exit(main())
