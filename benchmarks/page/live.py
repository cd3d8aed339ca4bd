"""What the page costs while nothing happens, and whether its memory grows while much does.

    python benchmarks/page/live.py [--minutes N] [--idle-seconds N] [--json]

- ``idle``: processor time of the control plane with no page open, with the page of an experiment open and
  seen, and with that page hidden, as shares of a core, each in turn and many times; what the page adds to
  the time without one just before counts, as the mean of all turns beside its standard error
- ``heap``: memory of scripts, after garbage was collected, of three tabs over so many minutes: twenty curves
  that grow, a log that is followed, and one that goes from view to view, which is looked at whenever it is
  back at the first; the median of the last fifth beside that of the fifth before the middle

Limits: 0.3 % of a core without a page, and 0.5 % more with one that is seen; hidden, no call and 0.05 %,
which is nothing but what a mean of many turns leaves uncertain; heaps flat within 10 %. Exits 1 when one is
missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.page import _data as data
from benchmarks.page._cluster import PageCluster, page_cluster
from benchmarks.page._tab import Tab, another, tab, what_is_missing
from benchmarks.standalone import say

_TRIALS = 20
_LINES_A_SECOND = 200
_REPORTS_A_SECOND = 2
_VIEW_SECONDS = 5.0
_SAMPLE_SECONDS = 30.0
_TURN_SECONDS = 12.0
_REST_SECONDS = 4.0
"""What was set off comes to rest."""
_HIDE = """(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One value beside its limit."""

    name: str
    value: float
    limit: float | None
    unit: str
    detail: str = ""

    @property
    def met(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.value <= self.limit

    def line(self) -> str:
        """What a person reads."""
        limit = "" if self.limit is None else f"   limit {self.limit:g}" + ("" if self.met else ", MISSED")
        return f"{self.name:44} {self.value:7.3f} {self.unit}{limit}   {self.detail}".rstrip()


async def idle(cluster: PageCluster, opened: Tab, path: str, *, seconds: float) -> AsyncIterator[Measured]:
    """What an open page adds to an idle control plane."""

    async def share() -> float:
        await asyncio.sleep(_REST_SECONDS)
        before, began = cluster.embedded.processor_seconds(), time.monotonic()
        await asyncio.sleep(_TURN_SECONDS)
        return 100 * (cluster.embedded.processor_seconds() - before) / (time.monotonic() - began)

    alone, seen, hidden = [], [], []
    calls = 0.0
    for _ in range(max(2, round(seconds / _TURN_SECONDS))):
        await opened.page.goto("about:blank")
        alone.append(await share())
        await opened.go(path)
        seen.append(await share() - alone[-1])
        await opened.page.evaluate(_HIDE, True)
        hidden.append(await share() - alone[-1])
        asks = "(seconds) => probe.pending + (performance.now() - probe.asked < 1000 * seconds)"
        calls += float(await opened.page.evaluate(asks, _TURN_SECONDS))
        await opened.page.evaluate(_HIDE, False)
    for name, shares, limit in (
        ("no page is open", alone, 0.3),
        ("added by a page that is seen", seen, 0.5),
        ("added by a hidden page", hidden, 0.05),
    ):
        error = statistics.stdev(shares) / len(shares) ** 0.5
        yield Measured(
            name=f"idle: {name}",
            value=statistics.mean(shares),
            limit=limit,
            unit="% of a core",
            detail=f"standard error {error:.3f} of {len(shares)} turns",
        )
    yield Measured(name="idle: a hidden page calls", value=calls, limit=0, unit="times")


async def heaps(
    cluster: PageCluster, opened: Tab, number: int, trials: list[Any], *, minutes: float
) -> AsyncIterator[Measured]:
    """How the memory of three live tabs changes."""
    log, wandering = await another(opened), await another(opened)
    await opened.go(f"experiments/{number}?metric=training%2Floss&top={_TRIALS}")
    await log.go(f"trials/{trials[0].number}?tab=logs")
    await wandering.go(f"experiments/{number}")
    views = (
        f"experiments/{number}?tab=search",
        f"experiments/{number}?tab=hparams",
        "",
        f"trials/{trials[1].number}",
        f"compare?trials={trials[1].number},{trials[2].number}",
        "cluster",
        f"experiments/{number}",
    )
    ends = time.monotonic() + 60 * minutes
    tabs = {"curves": opened, "log": log}
    samples: dict[str, list[float]] = {name: [] for name in (*tabs, "view to view")}
    work: list[Callable[[float], Coroutine[Any, Any, None]]] = [
        lambda until: _report(cluster, trials, until),
        lambda until: _say(cluster, trials[0], until),
        lambda until: _wander(wandering, views, until, samples["view to view"]),
    ]
    running = [asyncio.create_task(one(ends)) for one in work]
    while time.monotonic() < ends:
        await asyncio.sleep(_SAMPLE_SECONDS)
        for name, one in tabs.items():
            samples[name].append(await one.heap_bytes() / 1e6)
    await asyncio.gather(*running)
    for name, heap in samples.items():
        fifth = max(1, len(heap) // 5)
        before, after = (
            statistics.median(heap[len(heap) // 2 - fifth : len(heap) // 2]),
            statistics.median(heap[-fifth:]),
        )
        every = max(1, len(heap) // 10)
        detail = (
            f"{before:.1f} to {after:.1f} MB; each tenth: {', '.join(f'{one:.1f}' for one in heap[::every])}"
        )
        yield Measured(
            name=f"heap: {name}", value=100 * (after / before - 1), limit=10.0, unit="%", detail=detail
        )


async def _report(cluster: PageCluster, trials: list[Any], until: float) -> None:
    """Lets every trial report twice a second, and validate now and then."""
    chance = np.random.default_rng(1)
    sequences = {trial.trial_id: itertools.count() for trial in trials}
    for step in itertools.count(1):
        if time.monotonic() > until:
            return
        began = time.monotonic()
        for trial in trials:
            owner, token = cluster.owner(trial)
            sequence = next(sequences[trial.trial_id])
            values = chance.normal(size=(1, 2)) ** 2
            blocks = [
                data.block(
                    "training", range(step, step + 1), [data.METRIC, "accuracy"], values, first=sequence
                )
            ]
            if step % 20 == 0:
                sequence = next(sequences[trial.trial_id])
                blocks.append(
                    data.block(
                        "validation", range(step, step + 1), [data.METRIC], values[:, :1], first=sequence
                    )
                )
            await cluster.caller.call(
                "IngestReports",
                token=token,
                source="live",
                first_sequence=blocks[0].sequences[0],
                count=len(blocks),
                blocks=blocks,
                **data.SELECTION,
                **owner,
            )
        await asyncio.sleep(max(0.0, began + 1 / _REPORTS_A_SECOND - time.monotonic()))


async def _say(cluster: PageCluster, trial: Any, until: float) -> None:
    for second in itertools.count():
        if time.monotonic() > until:
            return
        began = time.monotonic()
        await data.say(cluster, trial, first=second * _LINES_A_SECOND, count=_LINES_A_SECOND)
        await asyncio.sleep(max(0.0, began + 1 - time.monotonic()))


async def _wander(opened: Tab, views: tuple[str, ...], until: float, heap: list[float]) -> None:
    """Goes from view to view within one document, as links do; adds the heap after each round."""
    while time.monotonic() < until:
        for path in views:
            await opened.follow_link(path)
            await asyncio.sleep(_VIEW_SECONDS)
        heap.append(await opened.heap_bytes() / 1e6)


async def measure(*, minutes: float, seconds: float) -> AsyncGenerator[Measured, None]:
    """Takes every figure."""
    async with page_cluster() as cluster:
        number, trials = await cluster.create(name="live", trials=_TRIALS, **data.random_search(_TRIALS))
        for trial in trials:
            await data.report_series(cluster, trial, 200, source="before")
        async with tab(cluster.embedded) as opened:
            await opened.sign_in(await cluster.sign_in_code())
            async for figure in idle(cluster, opened, f"experiments/{number}?top={_TRIALS}", seconds=seconds):
                yield figure
            if minutes:
                async for figure in heaps(cluster, opened, number, trials, minutes=minutes):
                    yield figure


async def run(*, minutes: float, seconds: float, as_json: bool) -> bool:
    """Prints every figure; whether all are within their limits."""
    figures = []
    async with contextlib.aclosing(measure(minutes=minutes, seconds=seconds)) as found:
        async for figure in found:
            figures.append(figure)
            if not as_json:
                say(figure.line())
    if as_json:
        say(json.dumps([asdict(figure) for figure in figures]))
    say(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return all(figure.met for figure in figures)


def main() -> int:
    """Prints what was measured; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="how long the tabs are live (default: 30)"
    )
    parser.add_argument(
        "--idle-seconds", type=float, default=180.0, help="how long each is measured in all (default: 180)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if missing := what_is_missing():
        say(f"skipped: {missing}")
        return 0
    done = asyncio.run(run(minutes=options.minutes, seconds=options.idle_seconds, as_json=options.json))
    return 0 if done else 1


if __name__ == "__main__":
    sys.exit(main())
