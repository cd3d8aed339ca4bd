"""What is done with the page on each load, and when its effect counts as seen."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.page import _gestures as gestures
from benchmarks.page._cluster import PageCluster
from benchmarks.page._figures import INTERACTION_MS, Figure
from benchmarks.page._follow import follow
from benchmarks.page._gestures import DRAWN
from benchmarks.page._tab import Tab

CURVE = (
    "[...document.querySelectorAll('figure .chart')]"
    ".some((one) => one.querySelector('canvas') && !one.querySelector('p'))"
)
ROWS = "document.querySelectorAll('tbody tr').length > 0"


@dataclass(frozen=True)
class Load:
    """What a cluster was filled with."""

    cluster: PageCluster
    number: int
    """Of the experiment."""
    trials: Sequence[Any]


View = Callable[[Tab, Load], AsyncIterator[Figure]]


async def list_of_all(opened: Tab, name: str) -> Figure:
    """The first page, with all that there is."""
    return await opened.paint(name, "", seen=ROWS)


async def experiments(opened: Tab, _: Load) -> AsyncIterator[Figure]:
    """A list of very many experiments."""
    page = opened.page
    yield await list_of_all(opened, "experiments: list")
    orders = ("Name", "ID", "State", "Name", "ID")
    table = page.get_by_role("table")
    yield await opened.react(
        "experiments: sort the list",
        lambda turn: table.get_by_role("button", name=orders[turn], exact=True).first.click(),
        on="click",
        seen=f"{gestures.LISTED} && {ROWS}",
    )
    yield await opened.paint("experiments: list again", "", seen=ROWS, repeats=1)
    yield await opened.react(
        "experiments: next page of the list",
        lambda _: page.get_by_role("button", name="Next page").click(),
        on="click",
        seen=f"{gestures.LISTED} && {ROWS}",
    )
    yield await opened.paint("experiments: first page again", "", seen=ROWS, repeats=1)
    yield await opened.react(
        "experiments: select all rows",
        lambda _: page.get_by_label("Select all rows").click(),
        on="click",
        seen="document.querySelectorAll('tr.chosen').length > 0 === (turn % 2 === 0)",
    )
    field = page.get_by_label("Filter experiments")
    await field.focus()
    # The list waits for 200 ms until nobody types any more.
    yield await opened.react(
        "experiments: filter by label and state",
        lambda turn: field.fill(f"label:label{turn} state:failed"),
        on="input",
        seen=f"{gestures.LISTED} && location.search.includes('label' + turn)",
        limit=gestures.SETTLE_MS + INTERACTION_MS,
    )
    yield await opened.paint("experiments: now", "now", seen=ROWS)


async def runs(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """Many trials with many metrics."""
    page = opened.page
    yield await list_of_all(opened, "runs: list of experiments")
    yield await opened.paint(
        "runs: overview, curves and table", f"experiments/{load.number}", seen=f"{CURVE} && {ROWS}"
    )
    yield await gestures.sort(opened, "runs: sort the table")
    yield await gestures.next_page(opened, "runs: next page of the table")
    yield await gestures.point(opened, "runs: point at the chart")
    yield await opened.react(
        "runs: choose another metric",
        lambda turn: gestures.choose_metric(page, f"training/layer{turn}.weight5"),
        on="change",
        seen=f"document.querySelector('figcaption span').title.includes('layer' + turn + '.') && {DRAWN}",
    )
    yield await opened.paint(
        "runs: a trial, first chart of 1500", f"trials/{load.trials[3].number}", seen=CURVE
    )
    yield await gestures.find(opened, "runs: find metrics", "layer1")
    yield await opened.react(
        "runs: scroll to other charts",
        lambda _: page.mouse.wheel(0, 800),
        on="wheel",
        seen=f"document.querySelector('main').scrollTop > 0 && {DRAWN}",
        limit=None,
    )


async def columns(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """Very many hyperparameters and metrics."""
    page = opened.page
    yield await opened.paint("columns: overview", f"experiments/{load.number}", seen=ROWS)
    yield await gestures.sort(opened, "columns: sort the table")
    yield await opened.paint(
        "columns: hyperparameters",
        f"experiments/{load.number}?tab=hparams",
        seen="document.querySelector('main svg[role=img] path')",
    )
    yield await opened.paint(
        "columns: a trial, first chart of 10 000", f"trials/{load.trials[0].number}", seen=CURVE
    )
    yield await gestures.find(opened, "columns: find metrics", "tag77")
    chosen = ",".join(str(trial.number) for trial in load.trials[:3])
    differences = f"compare?trials={chosen}&tab=differences"
    yield await opened.paint("columns: compare three trials", differences, seen=ROWS)
    yield await opened.react(
        "columns: show what is equal",
        lambda _: page.get_by_role("button", name="Show what is equal").click(),
        on="click",
        seen="document.querySelector('[aria-pressed]').ariaPressed === String(turn % 2 === 0)",
    )


async def series(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """One very long series."""
    yield await opened.paint(
        "series: a trial, the whole curve", f"trials/{load.trials[0].number}", seen=CURVE
    )
    yield await gestures.point(opened, "series: point at the chart")
    yield await gestures.zoom(opened, "series: zoom to full resolution")
    yield await gestures.smooth(opened, "series: smooth")


async def lines(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """Many lines in one chart."""
    path = f"experiments/{load.number}?metric=training%2Floss&top={len(load.trials)}"
    yield await opened.paint("lines: overview, first curves", path, seen=f"{CURVE} && {ROWS}")
    yield await opened.paint(
        "lines: all curves",
        path,
        seen=CURVE,
        quiet_ms=600,
        limit=None,
    )
    yield await gestures.point(opened, "lines: point at the chart")
    yield await gestures.zoom(opened, "lines: zoom all to full resolution")
    yield await gestures.smooth(opened, "lines: smooth")


async def search(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """A search of very many trials."""
    page = opened.page
    yield await opened.paint("search: overview", f"experiments/{load.number}", seen=ROWS)
    yield await gestures.sort(opened, "search: sort the table")
    picture = "document.querySelector('.brackets svg .dot')"
    yield await opened.paint("search: picture", f"experiments/{load.number}?tab=search", seen=picture)
    whole = f"{picture} && !document.querySelector('main [role=status]')"
    yield await opened.paint(
        "search: whole log", f"experiments/{load.number}?tab=search", seen=whole, limit=None
    )
    slider = page.get_by_label("Event up to which the search is shown")
    box = await slider.bounding_box()
    yield await opened.react(
        "search: move the slider",
        lambda turn: page.mouse.click(
            box["x"] + box["width"] * (0.8 - 0.13 * turn), box["y"] + box["height"] / 2
        ),
        on="input",
        seen=r"!/event (\d+) of \1$/.test(document.querySelector('input[type=range]').ariaValueText)",
    )
    yield await opened.paint(
        "search: hyperparameters",
        f"experiments/{load.number}?tab=hparams",
        seen="document.querySelector('main svg[role=img] path')",
    )


async def log(opened: Tab, load: Load) -> AsyncIterator[Figure]:
    """A long log, and one that grows fast."""
    page, path = opened.page, f"trials/{load.trials[0].number}?tab=logs"
    text = "document.querySelector('.line .text')"
    yield await opened.paint("log: newest lines", path, seen=text)
    box = page.get_by_role("log")
    await box.hover()
    yield await opened.react(
        "log: scroll",
        lambda _: page.mouse.wheel(0, -2000),
        on="wheel",
        seen="(() => { const { x, y } = document.querySelector('.lines').getBoundingClientRect();"
        " return document.elementFromPoint(x + 200, y + 60)?.closest('.line'); })()",
    )
    yield await opened.react(
        "log: errors alone",
        lambda turn: page.get_by_role("button", name=("error", "warning")[turn % 2], exact=True).click(),
        on="click",
        seen=f"!probe.pending && probe.answered > begin && {text}",
    )
    yield await opened.paint("log: a line of the beginning, by text", f"{path}&text=line+17+of", seen=text)
    yield await opened.paint("log: newest lines again", path, seen=text, repeats=1)
    for figure in await follow(opened, load.cluster, load.trials[0]):
        yield figure


VIEWS: Mapping[str, View] = {
    "experiments": experiments,
    "runs": runs,
    "columns": columns,
    "series": series,
    "lines": lines,
    "log": log,
    "search": search,
}
