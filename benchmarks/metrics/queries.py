"""How fast plots and summaries are answered.

    python benchmarks/metrics/queries.py [--points N] [--trials N] [--json]

A service in a process of its own holds one trial with a long series of ten metrics, and many trials with
short ones. The median of ten calls over the connection is given, beside the first call, which finds nothing
in memory. Exits 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.standalone import Standalone, say, seconds, standalone
from resolute.api.metrics.v1 import metrics_service_pb2 as api
from resolute.api.metrics.v1 import report_pb2
from resolute.api.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from resolute.client.connection.paging import MAX_PAGE_SIZE, all_items

NAMES = [f"metric_{number}" for number in range(10)]
LIMIT = 0.1
PAGE_LIMIT = 0.02
"""Of a page of summaries: a list of many trials is as many calls, each of which costs what its rows cost."""
_CALLS = 10
_ROWS = 8000


@dataclass(frozen=True)
class Result:
    """What a query took, in seconds."""

    name: str
    first: float
    median: float
    limit: float = LIMIT


def measure(points: int, trials: int) -> list[Result]:
    """Fills the service and asks it."""
    with standalone("metrics") as service:
        fill(service, points)
        ids = []
        for _ in range(trials):
            run = replace(service.run, trial_id=str(uuid.uuid4()))
            fill(replace(service, run=run), 100)
            ids.append(run.trial_id)
        with service.user_channel() as channel:
            stub = MetricsServiceStub(channel)
            plot = api.GetSeriesRequest(
                trial_id=service.run.trial_id, group="training", name=NAMES[3], max_points=1000
            )
            summaries = api.ListSummariesRequest(trial_ids=ids)

            def list_summaries() -> None:
                found = list(all_items(stub.ListSummaries, summaries, "summaries", page_size=MAX_PAGE_SIZE))
                assert len(found) == trials * len(NAMES)

            return [
                _time(f"1000 points of a series of {points}", lambda: stub.GetSeries(plot, timeout=60)),
                replace(
                    _time(f"summaries of {trials} trials", list_summaries),
                    limit=PAGE_LIMIT * -(-trials * len(NAMES) // MAX_PAGE_SIZE),
                ),
            ]


def _time(name: str, call: Callable[[], Any]) -> Result:
    first, *others = (seconds(call) for _ in range(_CALLS + 1))
    return Result(name, first, statistics.median(others))


def fill(service: Standalone, points: int) -> None:
    """Reports a series of every name."""
    values = np.random.default_rng(0).normal(size=(points, len(NAMES)))
    with service.trial_channel() as channel:
        stub = MetricsServiceStub(channel)
        for first in range(0, points, _ROWS):
            rows = range(first, min(first + _ROWS, points))
            block = report_pb2.ReportBlock(
                group="training",
                names=NAMES,
                sequences=rows,
                steps=rows,
                times=[1.7e9 + row for row in rows],
                values=values[rows.start : rows.stop].ravel().tolist(),
            )
            request = api.IngestReportsRequest(
                trial_id=service.run.trial_id,
                run=service.run.run,
                source="bench",
                experiment_id=service.run.experiment_id,
                first_sequence=first,
                count=len(rows),
                blocks=[block],
            )
            stub.IngestReports(request, timeout=60)


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=1_000_000, help="length of the series (default: 10^6)")
    parser.add_argument("--trials", type=int, default=1000, help="trials to summarize (default: 1000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    results = measure(options.points, options.trials)
    if options.json:
        say(json.dumps([asdict(result) for result in results]))
    else:
        for result in results:
            say(
                f"{result.name:36} {result.median * 1000:6.0f} ms, the first {result.first * 1000:6.0f} ms"
                f"   (limit {result.limit * 1000:.0f} ms)"
            )
    return 0 if all(result.median <= result.limit for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
