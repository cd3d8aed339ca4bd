"""The page beside MLflow's UI and TensorBoard: the same series, in the same browser, in one run.

    python benchmarks/page/beside.py [--runs N] [--points N] [--json]

MLflow lives in an environment of its own, as ``benchmarks/metrics/beside_mlflow.py`` says, which
RESOLUTE_BENCH_MLFLOW names; without any it is left out. Each tool has the same runs with one metric each. A
time runs from the navigation in a new document until a line is painted, the median of three; beside it stands
the processor time of the page's main thread and of the tool's server meanwhile.

- ``one``: the charts of one run
- ``all``: the metric of all runs, in one chart (ours, MLflow's) or in one card (TensorBoard's); ours counts
  until the last of its lines is painted, the others' until the first

Limit: all curves within the time that TensorBoard takes. Exits 1 when it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.page import _data as data
from benchmarks.page._cluster import page_cluster
from benchmarks.page._figures import Figure
from benchmarks.page._peers import DEFAULT_MLFLOW, mlflow, tensorboard
from benchmarks.page._tab import tab, what_is_missing
from benchmarks.page._views import CURVE
from benchmarks.standalone import say

OURS, TENSORBOARD = "ours: all", "TensorBoard: all"
MOST_RATIO = 1.0

# Plotly draws lines as SVG, or on a canvas of WebGL where they are many.
_PLOTLY = "document.querySelector('.js-plotly-plot .scatterlayer path.js-line, .js-plotly-plot canvas')"
# TensorBoard draws on a canvas of a worker, or as SVG where there is no WebGL.
_SCALARS = "document.querySelector('line-chart .series-view canvas, line-chart .series-view svg path')"


def curves(runs: int, points: int) -> list[list[float]]:
    """Losses that fall, with noise."""
    chance = random.Random(5)
    return [[3 / math.log(step + 3) + chance.gauss(0, 0.05) for step in range(points)] for _ in range(runs)]


async def measure(python: Path | None, *, runs: int, points: int) -> AsyncIterator[Figure]:
    """Fills each tool, and looks at it."""
    series = curves(runs, points)
    async with page_cluster() as cluster:
        number, trials = await cluster.create(name="beside", trials=runs, **data.random_search(runs))
        for trial, values in zip(trials, series, strict=True):
            await data.report_values(cluster, trial, values)
        async with tab(cluster.embedded) as opened:
            await opened.sign_in(await cluster.sign_in_code())
            yield await opened.paint("ours: one", f"trials/{trials[0].number}", seen=CURVE, limit=None)
            path = f"experiments/{number}?metric=training%2Floss&top={runs}"
            yield await opened.paint(OURS, path, seen=CURVE, quiet_ms=400, limit=None)
    with tempfile.TemporaryDirectory(prefix="resolute-bench-") as text, ExitStack() as serving:
        folder = Path(text)
        if python is not None:
            peer = serving.enter_context(mlflow(python, folder, series))
            async with tab(peer) as opened:
                experiment, run = peer.names["experiment"], peer.names["first"]
                one = f"#/experiments/{experiment}/runs/{run}/model-metrics"
                yield await opened.paint("MLflow: one", one, seen=_PLOTLY, limit=None)
                every = f"#/experiments/{experiment}/runs?compareRunsMode=CHART"
                yield await opened.paint("MLflow: all", every, seen=_PLOTLY, limit=None)
        peer = serving.enter_context(tensorboard(folder, series))
        async with tab(peer) as opened:
            one = "?runFilter=%5Etrial%200%24#timeseries"
            yield await opened.paint("TensorBoard: one", one, seen=_SCALARS, limit=None)
            yield await opened.paint(TENSORBOARD, "#timeseries", seen=_SCALARS, limit=None)


async def run(python: Path | None, *, runs: int, points: int, as_json: bool) -> bool:
    """Prints every figure as it is taken; whether ours is within its limit."""
    figures = []
    async for figure in measure(python, runs=runs, points=points):
        figures.append(figure)
        if not as_json:
            say(figure.line())
    if as_json:
        say(json.dumps([asdict(figure) for figure in figures]))
    medians = {figure.name: figure.median for figure in figures}
    ratio = medians[OURS] / medians[TENSORBOARD]
    met = ratio <= MOST_RATIO
    say(f"all curves, ours to TensorBoard's: {ratio:.2f} (at most {MOST_RATIO:g}){'' if met else ', MISSED'}")
    say(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return met


def main() -> int:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50, help="runs of each tool (default: 50)")
    parser.add_argument("--points", type=int, default=1000, help="points of each run (default: 1000)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if missing := what_is_missing():
        say(f"skipped: {missing}")
        return 0
    python = Path(os.environ.get("RESOLUTE_BENCH_MLFLOW", DEFAULT_MLFLOW))
    if not python.is_file():
        say(f"absent: MLflow; there is no {python}")
    known = python if python.is_file() else None
    met = asyncio.run(run(known, runs=options.runs, points=options.points, as_json=options.json))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
