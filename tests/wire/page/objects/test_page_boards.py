"""The built page in Chromium: views are kept as boards, shared with projects, and told of in reports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.browser import assert_accessible, assert_accessible_everywhere, browser_page
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import access_service_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

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
    await page.get_by_text("No project has one yet.").wait_for()
    await assert_accessible(page)

    await page.goto(f"{visit.url}/compare?trials=1,2")
    chart = page.get_by_role("img", name="training/loss")
    await chart.wait_for()
    await page.get_by_role("button", name="Large charts").click()
    await page.keyboard.press("b")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill(NAME)
    await assert_accessible_everywhere(page)
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


REPORT = f"""## Losses {MARKUP}

<script>alert(2)</script>

[out](javascript:alert(3)) and **both**:

![Both {MARKUP}](compare?trials=1,2&metric=training/loss)

![not of here](https://elsewhere.example/trials/1)

| \u202eword | number |
|---|---|
| {"w" * 400} | 1 |
"""


def test_a_project_shares_views_and_reports_with_live_charts(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, share_with_a_project)


async def share_with_a_project(visit: Visit) -> None:
    page = visit.page
    trials = [(await visit.create())[0] for _ in range(2)]
    for trial in trials:
        await visit.report(trial)
    await visit.sign_in()
    await share_a_view(visit)
    await write_a_report(visit)
    await change_it(visit)

    await page.get_by_role("button", name="Delete", exact=True).click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.get_by_role("heading", name="Of projects").wait_for()
    await page.get_by_role("link", name="shared", exact=True).wait_for()
    assert await page.get_by_role("link", name=re.compile("losses")).count() == 0


async def share_a_view(visit: Visit) -> None:
    """Makes a view a board of the project, twice; its link shows the view, and its first version stays."""
    page, dialog = visit.page, visit.page.get_by_role("dialog")
    for query in ("trials=1", "trials=1,2"):
        await page.goto(f"{visit.url}/compare?{query}")
        await page.get_by_role("link", name="trial 1", exact=True).wait_for()
        await page.keyboard.press("b")
        await dialog.get_by_label("Name").fill("shared")
        await dialog.get_by_label("For everybody in a project").check()
        await dialog.locator("select:enabled").wait_for()
        await assert_accessible_everywhere(page)
        await dialog.get_by_role("button", name="Save").click()
        await dialog.wait_for(state="detached")
    await page.goto(f"{visit.url}/boards")
    await page.get_by_role("link", name="Versions of shared").click()
    await page.get_by_label("Version").select_option(label="version 1 by ada")
    await page.wait_for_url(re.compile("version=1"))
    await page.goto(f"{visit.url}/boards?project=1&board=1")
    await page.get_by_role("link", name="trial 2", exact=True).wait_for()


async def write_a_report(visit: Visit) -> None:
    """Writes a report with a chart, looks at it on a wide and on a narrow screen, and saves it as HTML."""
    page, dialog = visit.page, visit.page.get_by_role("dialog")
    await page.goto(f"{visit.url}/boards")
    await page.get_by_role("button", name="New report").click()
    await dialog.get_by_label("Name").fill(f"losses {MARKUP}")
    await dialog.get_by_label("Text, in Markdown").fill(REPORT)
    await assert_accessible_everywhere(page)
    await dialog.get_by_role("button", name="Save").click()
    await page.get_by_role("img", name="training/loss").locator("canvas").wait_for()
    await page.get_by_role("heading", name=re.compile("^Losses <img")).wait_for()
    await page.get_by_text("out and both:").wait_for()
    assert await page.locator("a[href^=javascript]").count() == 0
    await assert_accessible_everywhere(page)
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Save as HTML").click()
    saved = visit.folder / "saved.html"
    await (await downloading.value).save_as(saved)
    written = saved.read_text()
    assert written.count("<svg ") == 1
    assert written.count("<polyline") > 2
    async with browser_page() as elsewhere:  # which fails if a script ran, or anything else was asked for
        await elsewhere.goto(saved.as_uri())
        await elsewhere.get_by_role("heading", name=re.compile("^Losses <img")).wait_for()
        assert await elsewhere.locator("img, script").count() == 0
        await elsewhere.get_by_text("Both <img").wait_for()


async def change_it(visit: Visit) -> None:
    page, dialog = visit.page, visit.page.get_by_role("dialog")
    await page.get_by_role("button", name="Change").click()
    await assert_accessible_everywhere(page)
    await dialog.get_by_label("Text, in Markdown").fill("All of it was wrong.")
    await dialog.get_by_role("button", name="Save").click()
    await page.get_by_text("All of it was wrong.").wait_for()
    await page.get_by_label("Version").select_option(label="version 1 by ada")
    await page.get_by_role("heading", name=re.compile("^Losses <img")).wait_for()
    assert "version=1" in page.url
