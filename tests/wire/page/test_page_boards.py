"""The built page in Chromium: views are kept as boards, found again in another browser, and removed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.browser import assert_accessible, browser_page
from support.services.access import calls
from support.services.gateway import need_http
from support.services.page_visit import MARKUP, Visit, visit_page

from resolute.api.experiments.v1 import access_service_pb2

need_http()

from resolute_gateway.web.page_files import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
NAME = f"losses {MARKUP} \u202e"


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_a_board_keeps_trials_and_arranged_charts(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, keep_a_board)


async def keep_a_board(visit: Visit) -> None:
    page = visit.page
    trials = [(await visit.create())[0] for _ in range(2)]
    for trial in trials:
        await visit.report(trial)
    await visit.sign_in()
    await page.goto(f"{visit.url}/boards")
    await page.get_by_text("None yet.").wait_for()
    await assert_accessible(page)

    await page.goto(f"{visit.url}/compare?trials=1,2")
    chart = page.get_by_role("img", name="training/loss")
    await chart.wait_for()
    await page.get_by_role("button", name="Large charts").click()
    await page.keyboard.press("b")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill(NAME)
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save").click()
    await dialog.wait_for(state="detached")

    await page.goto(f"{visit.url}/compare?trials=1")
    await page.get_by_role("button", name="Make this view a board").click()
    await dialog.get_by_label("Name").fill("second")
    await dialog.get_by_role("button", name="Save").click()
    await dialog.wait_for(state="detached")
    await page.keyboard.press("b")
    await dialog.get_by_label("Name").fill("second")
    await dialog.get_by_role("button", name="Replace").click()
    await dialog.wait_for(state="detached")
    await look_from_elsewhere(visit)

    await page.goto(f"{visit.url}/boards")
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.emulate_media(color_scheme="dark")
    await page.get_by_role("button", name="Remove the board second").click()
    await page.get_by_role("link", name="second").wait_for(state="detached")
    await assert_accessible(page)
    assert await page.evaluate("document.scrollingElement.scrollWidth") == 390
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("link", name="second").wait_for()


async def look_from_elsewhere(visit: Visit) -> None:
    """Opens the board in a browser that was never here."""
    async with calls(visit.running, visit.running.user_token()) as admin:
        made = await admin.access.CreateSignInCode(access_service_pb2.CreateSignInCodeRequest())
    async with browser_page() as page:
        await page.goto(f"{visit.url}/boards")
        await page.get_by_label("One-time code").fill(made.code)
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("heading", name="Sign in to Resolute").wait_for(state="detached")
        await page.goto(f"{visit.url}/boards")
        await page.get_by_role("link", name=re.compile("losses")).click()
        await page.get_by_role("link", name="trial 2").wait_for()
        await page.get_by_role("button", name="Large charts", pressed=True).wait_for()
        assert "size=large" in page.url
