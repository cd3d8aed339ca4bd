"""What people do on several views."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.page._figures import ZOOM_MS, Figure
from benchmarks.page._tab import Tab

SETTLE_MS = 200.0
"""How long a filter waits until nobody types any more."""
DRAWN = "probe.drawn > begin"
ANSWERED = "!probe.pending && probe.answered > begin"
LISTED = "probe.listed > begin"
_ZOOMED = f"{ANSWERED} && probe.drawn >= probe.answered"


async def sort(opened: Tab, name: str) -> Figure:
    """Orders the table of trials by one column after the other."""
    table = opened.page.get_by_role("table")
    names = ("Trial", "Steps", "Last", "Trial", "Best")
    return await opened.react(
        name,
        lambda turn: table.get_by_role("button", name=names[turn]).first.click(),
        on="click",
        seen="new URLSearchParams(location.search).get('sort')"
        f" && document.querySelector('th[aria-sort]:not([aria-sort=none])') && {ANSWERED}",
    )


async def next_page(opened: Tab, name: str) -> Figure:
    """Turns to further pages of the table of trials."""
    button = opened.page.get_by_role("button", name="Next")
    seen = f"new URLSearchParams(location.search).get('from') === String(50 * (turn + 1)) && {ANSWERED}"
    return await opened.react(name, lambda _: button.click(), on="click", seen=seen)


async def point(opened: Tab, name: str) -> Figure:
    """Points at the first chart, whose values are then told."""
    page = opened.page
    await page.evaluate("() => document.querySelector('.u-over').scrollIntoView({block: 'center'})")
    box = await page.locator(".u-over").first.bounding_box()
    return await opened.react(
        name,
        lambda turn: page.mouse.move(
            box["x"] + box["width"] * (0.2 + 0.13 * turn), box["y"] + box["height"] / 2
        ),
        on="mousemove",
        seen="document.querySelector('.tip')?.textContent",
    )


async def zoom(opened: Tab, name: str) -> Figure:
    """Drags over the first chart, and waits for the points of what was chosen."""
    page = opened.page
    area = page.locator(".u-over").first

    async def drag(_: int) -> None:
        box = await area.bounding_box()
        y = box["y"] + box["height"] / 2
        await page.mouse.move(box["x"] + box["width"] * 0.3, y)
        await page.mouse.down()
        await page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=3)
        await page.mouse.up()

    async def show_all() -> None:
        await page.get_by_role("button", name="Show all").first.click()

    return await opened.react(name, drag, on="mouseup", seen=_ZOOMED, limit=ZOOM_MS, restore=show_all)


async def choose_metric(page: Any, name: str) -> None:
    """Types the name of a metric that is to be drawn."""
    field = page.get_by_label("Metric", exact=True)
    await field.fill(name)
    await field.press("Enter")


async def smooth(opened: Tab, name: str) -> Figure:
    """Moves the slider for smoothing."""
    slider = opened.page.get_by_label("Smoothing")
    await slider.focus()
    return await opened.react(
        name, lambda _: opened.page.keyboard.press("ArrowRight"), on="input", seen=DRAWN
    )


async def find(opened: Tab, name: str, text: str) -> Figure:
    """Types a text, letter by letter, that the names of metrics must have."""
    field = opened.page.get_by_label("Find metrics")
    await field.focus()
    typed = "document.querySelector('input[type=search]').value"
    seen = f"document.querySelector('figcaption span')?.title.includes({typed})"
    figure = await opened.react(
        name, lambda turn: opened.page.keyboard.press(text[turn]), on="input", seen=seen, repeats=len(text)
    )
    await field.fill("")
    await opened.settle()
    return figure
