"""Links to the page of a Determined cluster, opened in Chromium: they lead to where each thing is now."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clusters.embedded import EmbeddedCluster, embedded
from support.old_cluster.content import Content
from support.old_cluster.master import OldMaster, serving_old_master
from support.pages.browser import browser_page, need_browser
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(600), pytest.mark.sampled(1, group="the page in a browser")]
CONFIG = "{name: own, entrypoint: sleep 600, searcher: {name: single, metric: loss}}"
LINKS = (
    ("det/experiments/1/overview", "experiments/2", "experiment 1"),
    ("det/experiments/2/trials/3", "trials/4", "Trial 4"),
    ("det/experiments/77", "experiments/77", "Experiment 77"),
)
"""An old link, where it leads, and what is told there. What was not imported is looked for by its number."""


def test_old_links_lead_to_what_was_imported(tmp_path: Path) -> None:
    need_browser(BUILT)
    (tmp_path / "code").mkdir()
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "password").write_text("")
    with (
        embedded(tmp_path / "home", slots=1, RESOLUTE_NO_HTTP="") as cluster,
        serving_old_master(OldMaster(Content(experiments=2))) as address,
    ):
        # A number of its own first: those of the other cluster are others here.
        cluster.det("e", "create", "config.yaml", "code", "--paused", cwd=tmp_path)
        password = str(tmp_path / "password")
        cluster.run("resolute", "import", "determined", address, "--password-file", password, timeout=300)
        asyncio.run(asyncio.wait_for(follow(cluster), 300))


async def follow(cluster: EmbeddedCluster) -> None:
    said = await asyncio.to_thread(cluster.run, "resolute", "user", "sign-in-link")
    link = said.stdout.strip()
    home = link.partition("/sign-in")[0]
    async with browser_page() as page:
        await page.goto(link)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("link", name="own").wait_for()
        for old, new, told in LINKS:
            await opened(page, f"{home}/{old}", f"{home}/{new}", told)


async def opened(page: Any, old: str, new: str, told: str) -> None:
    await page.goto(old)
    await page.wait_for_url(f"{new}*")
    await page.get_by_text(told).first.wait_for()
