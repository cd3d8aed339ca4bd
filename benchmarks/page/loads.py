"""How soon the page shows large things, and how soon it reacts, in Chromium.

    python benchmarks/page/loads.py [--only NAME ...] [--scale SHARE] [--json]

A cluster of its own is filled through the contract, as trials fill it: nothing is written into its databases.
Then a browser opens each view in a new document, and acts on it with a real pointer and keyboard. A time runs
from the navigation, or from the input's own time stamp, until the frame that shows its effect is painted; the
median of three or five counts. Beside each stands the processor time that the page's main thread and the
control plane had meanwhile, which other work on the machine stretches less.

- ``experiments``: 10 000 in the list
- ``runs``: 1500 trials with 1500 metrics each; ``columns``: 10 000 hyperparameters and 10 000 metrics
- ``series``: one of a million points; ``lines``: 200 in one chart
- ``log``: 100 000 lines, and 10 000 more a second; ``search``: an adaptive one of 10 000 trials

Limits: first useful paint 1 s, interaction 100 ms, zoom 300 ms. Exits 1 when one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.page import _data as data
from benchmarks.page._cluster import PageCluster, page_cluster
from benchmarks.page._figures import Figure
from benchmarks.page._tab import tab, what_is_missing
from benchmarks.page._views import VIEWS, Load
from benchmarks.standalone import say

Fill = Callable[[PageCluster, data.Sizes], Awaitable[tuple[int, list[Any]]]]
FILLS: Mapping[str, Fill] = {
    "experiments": lambda cluster, sizes: data.many_experiments(cluster, experiments=sizes.experiments),
    "runs": lambda cluster, sizes: data.many_runs(cluster, runs=sizes.runs, names=sizes.names),
    "columns": lambda cluster, sizes: data.many_columns(cluster, columns=sizes.columns),
    "series": lambda cluster, sizes: data.long_series(cluster, points=sizes.points),
    "lines": lambda cluster, sizes: data.many_lines(cluster, lines=sizes.lines),
    "log": lambda cluster, sizes: data.long_log(cluster, lines=sizes.log),
    "search": lambda cluster, sizes: data.long_search(cluster, trials=sizes.search),
}


async def measure(names: list[str], sizes: data.Sizes) -> AsyncIterator[Figure]:
    """Fills a cluster and looks at each load."""
    async with page_cluster() as cluster:
        filled = {}
        for name in names:
            began = time.perf_counter()
            filled[name] = await FILLS[name](cluster, sizes)
            say(f"{name}: filled in {time.perf_counter() - began:.0f} s, load {os.getloadavg()[0]:.1f}")
        async with tab(cluster.embedded) as opened:
            await opened.sign_in(await cluster.sign_in_code())
            for name in names:
                async for figure in VIEWS[name](opened, Load(cluster, *filled[name])):
                    yield figure


async def run(names: list[str], sizes: data.Sizes, *, as_json: bool) -> bool:
    """Prints every figure as it is taken; whether all are within their limits."""
    figures = []
    async for figure in measure(names, sizes):
        figures.append(figure)
        if not as_json:
            say(figure.line())
    if as_json:
        say(json.dumps([asdict(figure) for figure in figures]))
    say(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return all(figure.met for figure in figures)


def scaled(share: float) -> data.Sizes:
    """A share of every size, for trying the program out."""
    return data.Sizes(**{name: max(20, round(size * share)) for name, size in asdict(data.Sizes()).items()})


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=list(FILLS), default=list(FILLS), help="these loads alone"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="a share of every size (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if missing := what_is_missing():
        say(f"skipped: {missing}")
        return 0
    return 0 if asyncio.run(run(options.only, scaled(options.scale), as_json=options.json)) else 1


if __name__ == "__main__":
    sys.exit(main())
