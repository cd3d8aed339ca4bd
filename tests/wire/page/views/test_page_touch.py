"""The built page in Chromium with fingers on a narrow screen: views, tabs, menus, dialogs, charts, logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import IN_FIREFOX
from support.pages.visit import Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import access_service_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [
    pytest.mark.timeout(360),
    pytest.mark.sampled(1, group="the page in a browser"),
    pytest.mark.skipif(IN_FIREFOX, reason="fingers are sent by the protocol of Chromium"),
]
PATIENCE_MS = 60_000


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


async def drag(page: Any, target: Any, share_from: float, share_to: float) -> None:
    """Moves one finger across an element."""
    box = await target.bounding_box()
    y = box["y"] + box["height"] / 2
    session = await page.context.new_cdp_session(page)

    async def send(kind: str, share: float | None) -> None:
        points = [] if share is None else [{"x": box["x"] + box["width"] * share, "y": y}]
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    await send("touchStart", share_from)
    for part in range(1, 9):
        await send("touchMove", share_from + (share_to - share_from) * part / 8)
    await send("touchEnd", None)


def test_fingers_reach_all_that_a_mouse_does(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, touch)


async def touch(visit: Visit) -> None:
    [trial] = await visit.create(name="alive")
    await visit.report(trial)
    browser = visit.page.context.browser
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    page = await context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    try:
        await sign_in(visit, page)
        await page.get_by_role("link", name="alive").tap()
        await page.get_by_role("img", name="validation/loss").wait_for()
        await menus_and_dialogs(page)
        await page.goto(f"{visit.url}/trials/{trial.number}")
        await chart(page)
        await page.goto(f"{visit.url}/experiments/{trial.experiment_number}?tab=logs")
        await page.get_by_text("epoch 2").wait_for()
        await drag(page, page.locator(".brush"), 0.1, 0.8)
        await page.wait_for_url("**from=**until=**")
    finally:
        await context.close()
    assert not problems, problems


async def sign_in(visit: Visit, page: Any) -> None:
    async with calls(visit.running, visit.running.user_token()) as admin:
        await admin.user("ada")
        made = await admin.access.CreateSignInCode(access_service_pb2.CreateSignInCodeRequest())
    await page.goto(visit.url)
    await page.get_by_label("One-time code").fill(made.code)
    await page.get_by_role("button", name="Sign in").tap()


async def menus_and_dialogs(page: Any) -> None:
    """A menu opens by a tap and closes by one beside it; a dialog opens, and is left."""
    await page.get_by_text("Lines", exact=True).tap()
    await page.get_by_label("Baseline").wait_for()
    await page.get_by_role("heading", name="alive").tap()
    await page.get_by_label("Baseline").wait_for(state="detached")
    await page.get_by_role("button", name="Edit").tap()
    await page.get_by_role("dialog").get_by_label("Name").wait_for()
    await page.get_by_role("button", name="Leave as it is").tap()
    await page.get_by_role("dialog").wait_for(state="detached")
    await page.get_by_role("tab", name="Search").tap()
    await page.get_by_text("The search began").wait_for()


async def chart(page: Any) -> None:
    """A tap shows the values at a point, a finger along the chart zooms, and its menu shows all again."""
    plot = page.get_by_role("img", name="training/loss").locator(".u-over")
    await plot.scroll_into_view_if_needed()
    await plot.tap(position={"x": 120, "y": 40})
    await page.get_by_role("img", name="training/loss").get_by_text("trial 1").wait_for()
    await drag(page, plot, 0.3, 0.7)
    await page.wait_for_url("**zoom=**")
