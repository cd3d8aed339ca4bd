"""The page in Chromium beside real trainings, from submission to replay, through a killed control plane."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.clusters.embedded import EmbeddedCluster, embedded
from support.pages.browser import browser_page, need_browser
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(900), pytest.mark.sampled(1, group="the page in a browser")]
CONFIG = {
    "name": "watched",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"rate": 0.5},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 1_000_000}},
    "max_restarts": 0,
}
PLOT = '[aria-label="validation/loss"] canvas'
TRAIN = """
import json
import time

import resolute

checkpoint = resolute.get_cluster_info().latest_checkpoint
with resolute.core.init() as context:
    step = 0
    if checkpoint:
        with context.checkpoint.restore_path(checkpoint) as path:
            step = json.loads((path / "step.json").read_text())
    print("[rank=0] WARNING: begins at", step, flush=True)
    print("[rank=1] ERROR: has nothing to do", flush=True)
    for op in context.searcher.operations():
        while step < op.length:
            step += 1
            context.train.report_training_metrics(step, {"loss": 1 / step})
            if step % 20 == 0:
                context.train.report_validation_metrics(step, {"loss": 1 / step})
            time.sleep(0.05)
            if context.preempt.should_preempt():
                with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
                    (path / "step.json").write_text(json.dumps(step))
                raise SystemExit
        op.report_completed(1 / step)
"""


def test_an_experiment_is_watched_steered_and_looked_back_on(tmp_path: Path) -> None:
    need_browser(BUILT)
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    with embedded(tmp_path / "home", slots=1, RESOLUTE_NO_HTTP="") as cluster:
        asyncio.run(asyncio.wait_for(watch(cluster, tmp_path), 800))


async def watch(cluster: EmbeddedCluster, folder: Path) -> None:
    async with browser_page() as page:
        link = await run(cluster, "user", "sign-in-link")
        await page.goto(link)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_text("No experiments yet").wait_for()
        await run(cluster, "experiment", "create", str(folder / "config.yaml"), str(folder / "code"))
        await page.get_by_role("link", name="watched").click()

        await plot_grows(page)
        await pause_and_activate(page)
        await survive(page, cluster)
        await continue_trial(page)
        await read_logs(page)
        await download(page)
        await replay(page)


async def run(cluster: EmbeddedCluster, *words: str) -> str:
    """Runs a command beside the page, and returns what it said."""
    done = await asyncio.to_thread(cluster.run, "resolute", *words, timeout=300)
    return str(done.stdout).strip()


async def plot_grows(page: Any) -> None:
    """Waits until the plot of the metric has changed twice."""
    canvas = page.locator(PLOT)
    await canvas.wait_for()
    for _ in range(2):
        drawn = await canvas.evaluate("canvas => canvas.toDataURL()")
        await page.wait_for_function(
            f"drawn => document.querySelector('{PLOT}')?.toDataURL() !== drawn", arg=drawn
        )


async def pause_and_activate(page: Any) -> None:
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await page.get_by_role("cell", name="paused").wait_for()
    await page.get_by_role("button", name="Activate").click()
    await page.get_by_role("dialog").get_by_role("button", name="Activate").click()
    await page.get_by_role("cell", name="running").wait_for()


async def survive(page: Any, cluster: EmbeddedCluster) -> None:
    """Kills the control plane, and starts it again: the page goes on by itself, and so does its plot."""
    status = page.get_by_role("banner").get_by_role("status")
    await status.get_by_text("live", exact=True).wait_for()
    await asyncio.to_thread(cluster.kill)
    await status.get_by_text("reconnecting").wait_for()
    await asyncio.to_thread(cluster.up)
    await status.get_by_text("live", exact=True).wait_for()
    await plot_grows(page)


async def continue_trial(page: Any) -> None:
    """Ends the trial, and lets another experiment go on from where it was."""
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await page.get_by_role("cell", name="canceled").wait_for()
    await page.get_by_role("row").nth(1).get_by_role("link").click()
    await page.get_by_role("button", name="Continue").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("The config is right.").wait_for()
    await dialog.get_by_role("button", name="Continue").click()
    await page.get_by_role("cell", name="running").wait_for()
    await page.get_by_role("row").nth(1).get_by_role("link").click()


async def read_logs(page: Any) -> None:
    await page.get_by_role("tab", name="Logs").click()
    begins, nothing = page.get_by_text(re.compile("begins at [1-9]")), page.get_by_text("has nothing to do")
    await begins.last.wait_for()
    await page.get_by_role("button", name="rank 1").click()
    await begins.first.wait_for(state="detached")
    await page.get_by_role("button", name="error", exact=True).click()
    await nothing.first.wait_for()
    assert "rank=1" in page.url
    assert "level=error" in page.url
    await page.get_by_role("button", name="rank 1").click()
    await page.get_by_role("button", name="rank 0").click()
    await page.get_by_text("No line matches").or_(page.get_by_text("No lines yet")).wait_for()


async def download(page: Any) -> None:
    await page.get_by_role("link", name="Experiments").first.click()
    await page.get_by_role("link", name="watched").last.click()
    await page.get_by_role("tab", name="Checkpoints").click()
    await page.get_by_role("button", name=re.compile("files")).first.click()
    async with page.expect_download() as downloading:
        await (
            page.get_by_role("row")
            .filter(has_text="step.json")
            .get_by_role("button", name="Download")
            .click()
        )
    content = Path(await (await downloading.value).path()).read_text()
    assert int(content) > 0


async def replay(page: Any) -> None:
    await page.get_by_role("tab", name="Search").click()
    await page.get_by_text("The search began").wait_for()
    await page.get_by_role("slider").fill("0")
    await page.get_by_text("The search began").wait_for(state="detached")
    await page.get_by_role("button", name="To the end").click()
    await page.get_by_text("The search began").wait_for()
