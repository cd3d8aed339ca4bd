"""The built page in Chromium: signing in, seeing what happens, and reading logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served


@pytest.mark.timeout(360)
def test_a_person_signs_in_sees_pauses_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    visit_page(BUILT, tmp_path, sign_in_see_pause_and_read)


async def sign_in_see_pause_and_read(visit: Visit) -> None:
    page = visit.page
    await visit.sign_in()
    await page.get_by_text("No experiments yet").wait_for()

    [trial] = await visit.create()
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("heading", name=MARKUP).wait_for()
    trial_link = page.get_by_role("row").nth(1).get_by_role("link")
    await trial_link.wait_for()
    await visit.report(trial)
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await page.get_by_role("button", name="Activate").wait_for()

    await trial_link.click()
    await page.get_by_role("img", name="training/loss").locator("canvas").wait_for()
    await assert_accessible(page)
    await page.get_by_role("tab", name="Logs").click()
    await page.get_by_text("epoch 2").wait_for()
    await page.get_by_role("button", name="error", exact=True).click()
    await page.get_by_text("epoch 2").wait_for(state="detached")
    await page.get_by_text(MARKUP).wait_for()
    await assert_accessible(page)
    assert "level=error" in page.url
    await page.go_back()
    await page.get_by_text("epoch 2").wait_for()
    assert await page.locator("img").count() == 0  # markup in names and lines made no elements
