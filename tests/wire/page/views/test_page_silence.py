"""The built page in Chromium, whose gateway stands still or is away: it shows what it had, and goes on."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible_everywhere
from support.pages.visit import BEST, MARKUP, Visit, visit_page
from support.services.gateway import need_http
from support.services.processes.gateway import GatewayProcess

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
UNREAD = re.compile("Failed to fetch|cannot be shown|could not be|out of date")
MOST_ERRORS_A_SECOND = 2.0
"""What a browser writes into its console for each call that nobody answers."""
OPENED = 6
"""Views that are opened while the gateway is away."""
MOST_ERRORS_A_VIEW = 6
"""Calls of a view when it is opened: each may fail once, however quickly views follow each other."""


def test_a_view_goes_on_after_its_gateway_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    visit_page(BUILT, tmp_path, stand_still)


async def stand_still(visit: Visit) -> None:
    gateway = GatewayProcess(visit.running.address)
    page, status = visit.page, visit.page.get_by_role("banner").get_by_role("status")
    [trial] = await visit.create()
    try:
        await asyncio.to_thread(gateway.start)
        await replace(visit, url=gateway.url).sign_in()
        await page.get_by_role("link", name=MARKUP).click()
        await page.get_by_role("button", name="Pause").wait_for()
        await status.get_by_text("live", exact=True).wait_for()
        gateway.stand_still()
        await status.get_by_text("reconnecting").wait_for()
        caller, experiment = visit.caller, {"experiment_id": trial.experiment_id}
        await caller.call("PauseExperiment", token=caller.admin, experiment=experiment)
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(gateway.start)
        await page.get_by_role("button", name="Activate").wait_for()
        await status.get_by_text("live", exact=True).wait_for()
    finally:
        await asyncio.to_thread(gateway.kill)


def test_views_that_are_opened_while_the_gateway_is_away_show_what_the_tab_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    visit_page(BUILT, tmp_path, be_away)


async def be_away(visit: Visit) -> None:
    gateway = GatewayProcess(visit.running.address)
    page, status = visit.page, visit.page.get_by_role("banner").get_by_role("status")
    views = page.get_by_role("navigation", name="Views")
    [trial] = await visit.create()
    await visit.report(trial)
    try:
        await asyncio.to_thread(gateway.start)
        await replace(visit, url=gateway.url).sign_in()
        await look_around(page)
        await views.get_by_role("link", name="Models").click()
        await page.get_by_text("No models yet").wait_for()
        await views.get_by_role("link", name="Experiments").click()
        await page.get_by_role("link", name=MARKUP).wait_for()
        await status.get_by_text("live", exact=True).wait_for()

        errors: list[str] = []

        def note(message: Any) -> None:
            if message.type == "error":
                errors.append(message.text)

        page.on("console", note)
        began = asyncio.get_running_loop().time()
        await asyncio.to_thread(gateway.kill)
        await status.get_by_text("reconnecting").wait_for()
        await look_around(page)
        assert await page.get_by_text(UNREAD).count() == 0
        await page.locator("main.away").wait_for()
        await assert_accessible_everywhere(page)
        await views.get_by_role("link", name="Boards").click()
        await page.get_by_text("has not opened this view before").wait_for()
        # Where nothing is followed, calls tell whether the cluster is there.
        await views.get_by_role("link", name="Models").click()
        await page.get_by_text("No models yet").wait_for()
        await status.get_by_text("reconnecting").wait_for()
        seconds = asyncio.get_running_loop().time() - began
        most = OPENED * MOST_ERRORS_A_VIEW + MOST_ERRORS_A_SECOND * seconds
        assert len(errors) <= most, (len(errors), seconds)

        caller, experiment = visit.caller, {"experiment_id": trial.experiment_id}
        await caller.call("PauseExperiment", token=caller.admin, experiment=experiment)
        await asyncio.to_thread(gateway.start)
        await status.get_by_text("live", exact=True).wait_for()
        await views.get_by_role("link", name="Experiments").click()
        await page.get_by_role("link", name=MARKUP).click()
        await page.get_by_role("button", name="Activate").wait_for()
        assert await page.locator("main.away").count() == 0
        await write_while_away(visit, gateway)
    finally:
        await asyncio.to_thread(gateway.kill)


async def write_while_away(visit: Visit, gateway: GatewayProcess) -> None:
    """What is typed stays, and a view that was opened in vain opens when the gateway is back."""
    page, status = visit.page, visit.page.get_by_role("banner").get_by_role("status")
    await page.get_by_role("button", name="Edit").click()
    description = page.get_by_role("dialog").get_by_label("Description")
    await description.fill("half a sentence")
    await asyncio.to_thread(gateway.kill)
    await status.get_by_text("reconnecting").wait_for()
    await asyncio.to_thread(gateway.start)
    await status.get_by_text("live", exact=True).wait_for()
    assert await description.input_value() == "half a sentence"
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await page.get_by_text("half a sentence").wait_for()

    await asyncio.to_thread(gateway.kill)
    await status.get_by_text("reconnecting").wait_for()
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Boards").click()
    await page.get_by_text("has not opened this view before").wait_for()
    await asyncio.to_thread(gateway.start)
    await page.get_by_role("heading", name="Yours").wait_for()


async def look_around(page: Any) -> None:
    """Opens an experiment, its best trial and what runs now, and goes back to the list."""
    await page.get_by_role("link", name=MARKUP).first.click()
    await page.get_by_role("region", name="Best trial").get_by_text(str(BEST)).wait_for()
    await page.get_by_role("link", name="trial 1").first.click()
    await page.get_by_role("heading", name="Trial 1").wait_for()
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Now").click()
    await page.get_by_role("heading", name="Needs somebody").wait_for()
    await page.get_by_role("navigation", name="Views").get_by_role("link", name="Experiments").click()
    await page.get_by_role("link", name=MARKUP).first.wait_for()
