"""The built page in Chromium, whose gateway stands still: it notices, and goes on with the next one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.services.gateway import need_http
from support.services.gateway_process import GatewayProcess
from support.services.page_visit import MARKUP, Visit, visit_page

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]


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
