"""The page in Chromium beside a real cluster: commands and TensorBoard are started, looked at and ended."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.pages.browser import assert_accessible, browser_page, need_browser
from support.services.gateway import need_http
from support.waiting import wait_until

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(900), pytest.mark.sampled(1, group="the page in a browser")]
MARKUP = "<img src=x onerror=alert(1)>"
TRAIN = """
import resolute

with resolute.core.init() as context:
    for op in context.searcher.operations():
        context.train.report_training_metrics(op.length, {"loss": 0.5})
        context.train.report_validation_metrics(op.length, {"loss": 0.5})
        op.report_completed(0.5)
"""
CONFIG = """
name: shown
entrypoint: python3 train.py
searcher: {name: single, metric: loss, max_length: {batches: 3}}
"""


def test_tasks_are_started_followed_and_ended_on_the_page(tmp_path: Path) -> None:
    need_browser(BUILT)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "config.yaml").write_text(CONFIG)
    with embedded(tmp_path / "home", slots=1, RESOLUTE_NO_HTTP="") as cluster:
        asyncio.run(asyncio.wait_for(look(cluster, tmp_path), 800))


async def look(cluster: EmbeddedCluster, folder: Path) -> None:
    async with browser_page() as page:
        await page.goto(await run(cluster, "user", "sign-in-link"))
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("No experiments yet").wait_for()
        await run_a_command(page)
        await run(cluster, "experiment", "create", "-f", str(folder / "config.yaml"), str(folder))
        await start_tensorboard(page)


async def run(cluster: EmbeddedCluster, *words: str) -> str:
    """Runs a command beside the page, and returns what it said."""
    done = await asyncio.to_thread(cluster.run, "resolute", *words, timeout=300)
    return str(done.stdout).strip()


async def run_a_command(page: Any) -> None:
    dialog = page.get_by_role("dialog")
    await page.keyboard.press("g")
    await page.keyboard.press("t")
    await page.get_by_text("None yet").wait_for()
    await page.get_by_role("button", name="Run a command").click()
    assert await dialog.get_by_role("button", name="Run").is_disabled()
    await dialog.get_by_label("Command").fill(f"echo $((20 + 22)); : '{MARKUP}' '\u202eecho'; sleep 600")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Run").click()
    await page.get_by_text("42", exact=True).wait_for()
    assert await page.get_by_role("tab").all_inner_texts() == ["Log", "Code", "Config"]
    await assert_accessible(page)

    path = page.get_by_role("navigation", name="Where this is")
    await path.get_by_role("link", name="Experiments").click()  # no experiment is new, and the list stays
    await page.get_by_text("No experiments yet").wait_for()
    await page.keyboard.press("g")
    await page.keyboard.press("t")
    row = page.get_by_role("row", name=re.compile("echo"))
    await row.get_by_text("running").wait_for()
    await row.get_by_text(MARKUP).wait_for()
    await row.get_by_text(re.compile(r"\\u202eecho")).wait_for()
    await assert_accessible(page)
    await row.get_by_role("button", name="Kill").click()
    await dialog.get_by_role("button", name="Kill").click()
    await row.get_by_text("killed", exact=True).wait_for()


async def start_tensorboard(page: Any) -> None:
    await page.get_by_role("link", name="Experiments").first.click()
    await page.get_by_role("link", name="shown").click()
    await page.get_by_role("link", name="TensorBoard").click()
    await page.get_by_role("dialog").get_by_role("button", name="Start").click()
    link = page.get_by_role("link", name="Open TensorBoard")
    await link.wait_for(timeout=300_000)
    await assert_accessible(page)
    address = await link.get_attribute("href")

    def tags() -> dict[str, list[str]]:
        with urllib.request.urlopen(f"{address}data/plugin/scalars/tags", timeout=60) as answer:
            found: dict[str, list[str]] = json.loads(answer.read())
            return found

    await asyncio.to_thread(
        wait_until, lambda: any("loss" in tag for found in tags().values() for tag in found), what="metrics"
    )
    await page.get_by_role("button", name="Kill").click()
    await page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    await page.get_by_text("TensorBoard has ended").wait_for()
