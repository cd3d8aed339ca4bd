"""The system's Chromium, or its Firefox, driven by playwright, with the page of the gateway in it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.backends import missing
from support.pages.firefox import PROGRAM as FIREFOX
from support.pages.firefox import firefox

PATIENCE_MS = 60_000
IN_FIREFOX = os.environ.get("RESOLUTE_TEST_BROWSER") == "firefox"
"""Whether tests of the page run in Firefox and not in Chromium; `make page-in-firefox` sets it."""
SCREENS = ((1440, 900), (1024, 768), (390, 844))
"""Widths and heights of a screen, a small one, and a phone."""
_TOO_WIDE = """[document.scrollingElement, ...document.querySelectorAll(".scroll-x:has(> table)")]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => `${one.className || one.tagName}: ${one.scrollWidth} of ${one.clientWidth}`)"""
AXE = Path(__file__).parents[3] / "services/gateway/web/node_modules/axe-core/axe.min.js"


def need_browser(built: Path) -> None:
    """Skips the test where the page, or what drives it, is not here.

    Args:
        built: Folder of the built page.
    """
    if not (built / "index.html").is_file() or not AXE.is_file():
        missing("the page is not built: `make page` builds it, with Node 20.19 or newer")
    if importlib.util.find_spec("playwright") is None or not shutil.which("chromium"):
        missing("Chromium or playwright is not here: `make backends setup` installs them")
    if IN_FIREFOX and not shutil.which(FIREFOX):
        missing("Firefox is not here: `apt-get install firefox-esr` installs it")


@asynccontextmanager
async def browser_page() -> AsyncIterator[Any]:
    """An empty tab; fails at its end if a script failed, or an error was written into a console.

    Where the network refuses, browsers write one, whatever the page does: that does not count.
    """
    from playwright.async_api import async_playwright

    problems: list[str] = []

    def heard(message: Any) -> None:
        if message.type == "error" and "net::ERR_" not in message.text:
            problems.append(message.text)

    def opened(page: Any) -> None:
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(f"markup was run: {dialog.message}"))
        page.on("console", heard)

    async with async_playwright() as playwright, _browser(playwright) as browser:
        # Where a proxy is in front, its certificate is signed by an authority of the test.
        context = await browser.new_context(reduced_motion="reduce", ignore_https_errors=True)
        await context.add_init_script(path=AXE)
        context.set_default_timeout(PATIENCE_MS)
        context.on("page", opened)
        yield await context.new_page()
    assert not problems, problems


@asynccontextmanager
async def _browser(playwright: Any) -> AsyncIterator[Any]:
    if IN_FIREFOX:
        with tempfile.TemporaryDirectory() as folder:
            async with firefox(playwright, Path(folder)) as browser:
                yield browser
        return
    # Containers have no sandbox for root, and little shared memory.
    browser = await playwright.chromium.launch(
        executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
    )
    try:
        yield browser
    finally:
        await browser.close()


async def assert_accessible_everywhere(page: Any) -> None:
    """Asserts the same on three screens, light and dark, and that the view is no wider than they are."""
    for width, height in SCREENS:
        await page.set_viewport_size({"width": width, "height": height})
        for theme in ("light", "dark"):
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await assert_accessible(page)
        root = "document.scrollingElement"
        assert await page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0, width
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await page.set_viewport_size({"width": SCREENS[0][0], "height": SCREENS[0][1]})


async def assert_fits(page: Any) -> None:
    """Asserts that neither the view nor a list in it is wider than its place."""
    wide = await page.evaluate(_TOO_WIDE)
    assert not wide, f"{page.url}, {page.viewport_size}: {wide}"


async def assert_accessible(page: Any) -> None:
    """Asserts that axe finds nothing that keeps people from using what is shown."""
    report = await page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    found = [(one["id"], [node["target"] for node in one["nodes"]][:3]) for one in report["violations"]]
    assert not found, f"{page.url}: {found}"
