"""A tab of Chromium that takes times: from an address to what is seen, and from an input to its effect."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.pages.browser import browser_page

from benchmarks.page._figures import INTERACTION_MS, PAINT_MS, Figure, Sample
from resolute_gateway.requirements import BUILT

_PROBE = Path(__file__).with_name("_probe.js")
_PATIENCE_SECONDS = 60.0
_SIZE = {"width": 1440, "height": 900}


def what_is_missing() -> str:
    """Why no page can be shown here, and what to do about it; empty where it can."""
    if not (BUILT / "index.html").is_file():
        return "the page is not built: `make page` builds it"
    if importlib.util.find_spec("playwright") is None or not shutil.which("chromium"):
        return "Chromium or playwright is not here: `make backends setup` installs them"
    return ""


class Served(Protocol):
    """Something with a page."""

    @property
    def url(self) -> str:
        """Where its page is."""

    def processor_seconds(self) -> float:
        """Processor time of what serves it so far."""


class Tab:
    """A tab with the page of a cluster, or of another tool.

    Args:
        page: The tab, as playwright drives it.
        session: Its connection for developer tools.
        cluster: Whose page it shows.
    """

    def __init__(self, page: Any, session: Any, cluster: Served) -> None:
        self.page = page
        self._session = session
        self.cluster = cluster

    async def sign_in(self, code: str) -> None:
        """Signs in with a one-time code."""
        await self.page.goto(self.cluster.url)
        await self.page.get_by_label("One-time code").fill(code)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.get_by_role("heading", name="Sign in to Resolute").wait_for(state="detached")

    async def go(self, path: str) -> None:
        """Opens a view in a new document."""
        await self.page.goto(f"{self.cluster.url}/{path}")

    async def follow_link(self, path: str) -> None:
        """Goes to a view in the document that is there, as a link does."""
        await self.page.evaluate(
            "(href) => { const link = document.createElement('a'); link.href = href;"
            " document.body.append(link); link.click(); link.remove(); }",
            f"{self.cluster.url}/{path}",
        )

    async def paint(
        self,
        name: str,
        path: str,
        *,
        seen: str,
        limit: float | None = PAINT_MS,
        repeats: int = 3,
        quiet_ms: int | None = None,
    ) -> Figure:
        """Times loading an address in a new document until something is painted.

        Args:
            name: Of the figure.
            path: Where, below the page.
            seen: A condition in JavaScript.
            limit: In milliseconds.
            repeats: How often.
            quiet_ms: Counts until the last drawing, after which none comes for so long; absent for the first.
        """
        call = f"loaded(() => {seen})" if quiet_ms is None else f"settled(() => {seen}, {quiet_ms})"

        async def load(_: int) -> float:
            await self.page.goto(f"{self.cluster.url}/{path}", wait_until="commit")
            return await self._told(f"() => probe.{call}", name)

        samples = []
        for turn in range(repeats):
            await self.page.goto("about:blank")
            samples.append(await self._sampled(load, turn))
        await self.settle()
        return Figure(name=name, samples=tuple(samples), limit=limit)

    async def react(
        self,
        name: str,
        act: Callable[[int], Awaitable[Any]],
        *,
        on: str,
        seen: str,
        limit: float | None = INTERACTION_MS,
        repeats: int = 5,
        restore: Callable[[], Awaitable[Any]] | None = None,
    ) -> Figure:
        """Times an input until its effect is painted.

        Args:
            name: Of the figure.
            act: Makes the input; told how often it was made before.
            on: Type of the event that counts as the input.
            seen: A condition in JavaScript on ``begin``, when the input was made, and ``turn``, how often
                before.
            limit: In milliseconds.
            repeats: How often.
            restore: Goes back to what was before the input, after each; its own events count for nothing.
        """

        async def once(turn: int) -> float:
            await self.page.evaluate(
                f"() => {{ const turn = {turn}; probe.listen({on!r}, (begin) => {seen}); }}"
            )
            await act(turn)
            return await self._told("() => probe.result", name)

        samples = []
        for turn in range(repeats):
            samples.append(await self._sampled(once, turn))
            await self.settle()
            if restore is not None:
                await restore()
                await self.settle()
        return Figure(name=name, samples=tuple(samples), limit=limit)

    async def _sampled(self, work: Callable[[int], Awaitable[float]], turn: int) -> Sample:
        page, server = await self._page_ms(), self.cluster.processor_seconds()
        taken = await work(turn)
        page, server = await self._page_ms() - page, self.cluster.processor_seconds() - server
        return Sample(taken=taken, page=page, server=1000 * server)

    async def _told(self, script: str, name: str) -> float:
        try:
            return float(await asyncio.wait_for(self.page.evaluate(script), _PATIENCE_SECONDS))
        except asyncio.TimeoutError:
            raise TimeoutError(f"{name}: nothing was seen within {_PATIENCE_SECONDS:g} s") from None

    async def _page_ms(self) -> float:
        metrics = (await self._session.send("Performance.getMetrics"))["metrics"]
        return 1000 * next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    async def settle(self) -> None:
        """Waits until no answer is outstanding and nothing was drawn for half a second."""
        await self.page.wait_for_function(
            "() => !probe.pending && performance.now() - Math.max(probe.drawn, probe.answered) > 500"
        )

    async def heap_bytes(self) -> float:
        """Memory of the page's objects after garbage was collected."""
        for _ in range(2):
            await self._session.send("HeapProfiler.collectGarbage")
        return float((await self._session.send("Runtime.getHeapUsage"))["usedSize"])


@asynccontextmanager
async def tab(cluster: Served) -> AsyncIterator[Tab]:
    """Opens a browser with one empty tab until the block ends."""
    async with browser_page() as page:
        await page.context.add_init_script(path=_PROBE)
        yield await _tab(page, cluster)


async def another(opened: Tab) -> Tab:
    """Opens one more tab in the browser of a tab."""
    return await _tab(await opened.page.context.new_page(), opened.cluster)


async def _tab(page: Any, cluster: Served) -> Tab:
    await page.set_viewport_size(_SIZE)
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return Tab(page, session, cluster)
