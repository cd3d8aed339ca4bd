"""The charts of the page in Chromium: two searches, zoomed, grouped, overlaid, arranged and exported."""

from __future__ import annotations

import asyncio
import csv
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clusters.embedded import EmbeddedCluster, embedded
from support.pages.browser import assert_accessible, browser_page, need_browser
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(600), pytest.mark.sampled(1, group="the page in a browser")]
STEPS = 20
TRIALS = 4
TRAIN = f"""
import resolute

hparams = resolute.get_cluster_info().trial.hparams
with resolute.core.init() as context:
    for op in context.searcher.operations():
        for step in range(1, {STEPS} + 1):
            loss = hparams["rate"] / step
            context.train.report_training_metrics(step, {{"loss": loss, "lr": 1 - step / 100}})
            context.train.report_metrics(group="system", steps_completed=step, metrics={{"memory": step}})
            context.train.report_validation_metrics(step, {{"error": loss}})
        op.report_completed(hparams["rate"])
"""


def test_charts_are_zoomed_grouped_overlaid_arranged_and_exported(tmp_path: Path) -> None:
    need_browser(BUILT)
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    with embedded(tmp_path / "home", slots=2, RESOLUTE_NO_HTTP="") as cluster:
        for number, label in enumerate(("first", "second"), start=1):
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(config(label)))
            cluster.run("resolute", "experiment", "create", str(tmp_path / "config.yaml"), str(code))
            cluster.run("resolute", "experiment", "wait", str(number), timeout=300)
        asyncio.run(asyncio.wait_for(look(cluster), 400))


def config(label: str) -> dict[str, Any]:
    return {
        "name": f"{label} sweep",
        "labels": [label],
        "entrypoint": "python3 train.py",
        "hyperparameters": {
            "rate": {"type": "double", "minval": 0.1, "maxval": 1.0, "count": 2},
            "kind": {"type": "categorical", "vals": ["a", "b"]},
        },
        "searcher": {
            "name": "grid",
            "metric": "error",
            "max_length": {"batches": STEPS},
        },
    }


async def look(cluster: EmbeddedCluster) -> None:
    link = (await asyncio.to_thread(cluster.run, "resolute", "user", "sign-in-link")).stdout.strip()
    root = link.partition("sign-in")[0]
    async with browser_page() as page:
        await page.goto(link)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("link", name="first sweep").click()
        await group(page)
        await zoom_by_keys(page)
        await export(page)
        await hyperparameters(page)
        await overlay(page, root)
        await arrange(page, root)


async def group(page: Any) -> None:
    """Groups the lines by a hyperparameter, from the menu."""
    await page.get_by_text("Lines", exact=True).click()
    await page.get_by_label("Group by").select_option("kind")
    legend = page.get_by_role("list", name="Legend")
    await legend.get_by_text(re.compile(r"^kind [ab] \(\d\)$")).first.wait_for()
    assert "group=kind" in page.url
    await assert_accessible(page)
    await page.get_by_label("Group by").select_option("")
    await page.get_by_label("Colour by").select_option("rate")
    await legend.get_by_text("rate").wait_for()
    await page.get_by_label("Colour by").select_option("")
    await page.keyboard.press("Escape")


async def zoom_by_keys(page: Any) -> None:
    """Zooms and moves a chart by keys alone, and shows all again."""
    chart = page.get_by_role("img", name="validation/error")
    await chart.focus()
    await page.keyboard.press("+")
    await page.wait_for_url(re.compile("zoom="))
    await page.keyboard.press("ArrowUp")
    await page.wait_for_url(re.compile("heights=validation"))
    await page.keyboard.press("0")
    await page.get_by_role("button", name="Show all").wait_for(state="detached")
    assert "zoom=" not in page.url


async def export(page: Any) -> None:
    """Saves the chart in all formats, and reads what was saved."""
    await page.get_by_label("validation/error: range, export and more").click()
    rows = list(csv.DictReader((await save(page, "CSV")).splitlines()))
    assert len(rows) == TRIALS * STEPS
    assert {row["step"] for row in rows} == {str(step) for step in range(1, STEPS + 1)}
    svg = await save(page, "SVG")
    assert svg.count("<polyline") > TRIALS
    assert "validation/error</text>" in svg
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="PNG").click()
    png = Path(await (await downloading.value).path()).read_bytes()
    assert png.startswith(b"\x89PNG")
    await page.keyboard.press("Escape")


async def save(page: Any, name: str) -> str:
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name=name).click()
    return Path(await (await downloading.value).path()).read_text()


async def hyperparameters(page: Any) -> None:
    """The tab has what users of Determined look for there."""
    await page.get_by_role("tab", name="Hyperparameters").click()
    for name in ("Learning curves", "Together", "Each against error", "Any two", "Heat map"):
        await page.get_by_role("heading", name=name, exact=True).wait_for()
    await page.get_by_role("region", name="Heat map").get_by_role("rowheader").first.wait_for()
    await page.get_by_label("colour").select_option("kind")
    await (
        page.get_by_role("list", name="Legend")
        .get_by_text("kind a")
        .or_(page.get_by_role("list", name="Legend").get_by_text("kind b"))
        .first.wait_for()
    )
    await assert_accessible(page)


async def overlay(page: Any, root: str) -> None:
    """Draws all trials of both experiments in one chart, by their labels, beside a baseline."""
    await page.goto(f"{root}compare?experiments=1,2&tab=curves&group=@labels&baseline=1")
    legend = page.get_by_role("list", name="Legend")
    for label in ("first", "second"):
        await legend.get_by_text(re.compile(rf"^{label} \(\d\)$")).wait_for()
    await page.locator(".u-over").hover()
    await page.locator(".tip").get_by_text("(baseline)").wait_for()
    await assert_accessible(page)


async def arrange(page: Any, root: str) -> None:
    """Orders the charts of a trial, which stay so for the user."""
    await page.goto(f"{root}trials/1")
    headings = page.locator("main h2")
    await headings.last.wait_for()
    assert await headings.all_inner_texts() == ["Metric of the search", "training", "system"]
    await page.get_by_label("training/lr: range, export and more").click()
    await page.get_by_role("button", name="Pin").click()
    await page.get_by_role("heading", name="Pinned").wait_for()
    # Charts are drawn where they are seen.
    await page.get_by_role("heading", name="system").scroll_into_view_if_needed()
    await page.mouse.wheel(0, 2000)
    await page.get_by_label("system/memory: range, export and more").click()
    await page.get_by_role("button", name="Hide", exact=True).click()
    await page.get_by_role("heading", name="system").wait_for(state="detached")
    await page.goto(f"{root}trials/2")
    await page.get_by_role("heading", name="Pinned").wait_for()
    assert await headings.all_inner_texts() == ["Pinned", "Metric of the search", "training"]
    await page.get_by_text("Hidden (1)").click()
    await page.get_by_role("button", name="Show system/memory").click()
    await page.get_by_role("heading", name="system").wait_for()
