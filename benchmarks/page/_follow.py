"""A log that grows by ten thousand lines a second, followed in the page."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.page import _data as data
from benchmarks.page._cluster import PageCluster
from benchmarks.page._figures import Figure, Sample
from benchmarks.page._tab import Tab

_SECONDS = 10
_RATE = 10_000
LAG_MS = 1000.0
_NEWEST = """() => {
  const texts = document.querySelectorAll('.line .text');
  return Number(/line (\\d+) of/.exec(texts[texts.length - 1]?.textContent ?? '')?.[1] ?? -1);
}"""


async def follow(opened: Tab, cluster: PageCluster, trial: Any) -> list[Figure]:
    """Sends lines at a steady rate and looks which one is at the end of the page.

    Returns:
        How long after it was stored a line is seen, and how long one frame took, each many times.
    """
    first = await _lines_so_far(opened)
    stored: list[tuple[int, float]] = []

    async def send() -> None:
        begun = time.monotonic()
        for second in range(10 * _SECONDS):
            count = _RATE // 10
            await data.say(cluster, trial, first=first + second * count, count=count)
            stored.append((first + (second + 1) * count - 1, time.monotonic()))
            await asyncio.sleep(max(0.0, begun + (second + 1) / 10 - time.monotonic()))

    sending = asyncio.create_task(send())
    lags: dict[int, float] = {}
    ends = time.monotonic() + _SECONDS + 30
    while time.monotonic() < ends and (not sending.done() or len(lags) < len(stored)):
        newest, now = await opened.page.evaluate(_NEWEST), time.monotonic()
        for number, since in stored:
            if number not in lags and newest >= number:
                lags[number] = 1000 * (now - since)
        await asyncio.sleep(0.02)
    await sending
    took = stored[-1][1] - stored[0][1]
    rate = (len(stored) - 1) * _RATE / 10 / took
    missing = len(stored) - len(lags)
    samples = tuple(Sample(taken=one, page=0, server=0) for one in lags.values())
    name = f"log: from stored to seen, at {rate:,.0f} lines/s"
    return [
        Figure(
            name=name + (f", {missing} of {len(stored)} never" if missing else ""),
            samples=samples,
            limit=LAG_MS,
        )
    ]


async def _lines_so_far(opened: Tab) -> int:
    return int(await opened.page.evaluate(_NEWEST)) + 1
