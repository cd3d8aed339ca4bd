"""The built page in Chromium: places are made, experiments moved, and versions of models named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
PROJECT = f"{MARKUP} {'w' * 40}"


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_workspaces_and_projects_are_made_and_an_experiment_is_moved(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, make_places)


async def make_places(visit: Visit) -> None:
    page, dialog = visit.page, visit.page.get_by_role("dialog")
    trial = (await visit.create())[0]
    await visit.report(trial)
    await visit.sign_in()
    await page.goto(f"{visit.url}/cluster?tab=workspaces")
    await page.get_by_role("button", name="New workspace").click()
    await dialog.get_by_label("Name").fill("vision")
    await dialog.get_by_role("button", name="Make it").click()
    await page.get_by_role("button", name="Projects of vision").click()
    await dialog.get_by_role("button", name="New project").click()
    await dialog.last.get_by_label("Name").fill(PROJECT)
    await assert_accessible(page)
    await dialog.last.get_by_role("button", name="Make it").click()
    await dialog.get_by_role("link", name=MARKUP).wait_for()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await dialog.wait_for(state="detached")
    await page.get_by_role("button", name="Change vision").click()
    await dialog.get_by_label("Name").fill("sight")
    await dialog.get_by_role("button", name="Change", exact=True).click()
    await page.get_by_role("cell", name="sight", exact=True).wait_for()

    await page.goto(f"{visit.url}/experiments/1")
    await page.get_by_role("button", name="Move", exact=True).click()
    await dialog.locator("select").select_option(label=f"sight / {PROJECT}")
    await dialog.get_by_text("It leaves its workspace only when it has ended").wait_for()
    assert await dialog.get_by_role("button", name="Move").is_disabled()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await visit.caller.call("KillExperiment", token=visit.caller.admin, experiment={"number": 1})
    await page.get_by_role("button", name="Continue").wait_for()
    await page.get_by_role("button", name="Move", exact=True).click()
    await dialog.locator("select").select_option(label=f"sight / {PROJECT}")
    await dialog.get_by_role("button", name="Move").click()
    await page.get_by_text("Moved experiment 1").wait_for()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("button", name="Move", exact=True).click()
    await dialog.get_by_text("It is in Uncategorized / Uncategorized.").wait_for()


def test_versions_of_models_are_named_and_labelled(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, name_a_version)


async def name_a_version(visit: Visit) -> None:
    page, dialog = visit.page, visit.page.get_by_role("dialog")
    trial = (await visit.create())[0]
    await visit.report(trial)
    await visit.save(trial, b"weights")
    await visit.sign_in()
    await page.goto(f"{visit.url}/experiments/1?tab=checkpoints")
    await page.get_by_role("button", name="Register").first.click()
    await dialog.get_by_label(re.compile("^Model")).fill("net")
    await dialog.get_by_role("button", name="Register").click()
    await dialog.get_by_role("status").wait_for()
    await page.goto(f"{visit.url}/models?model=1")
    await page.get_by_role("button", name="Change version 1").click()
    await dialog.get_by_label("Name, as an alias of it").fill(f"best {MARKUP}")
    await dialog.get_by_label(re.compile("^Labels")).fill("staging, \u202ereviewed")
    await assert_accessible(page)
    await dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text="best <img")
    await row.get_by_text("staging").wait_for()
    await row.get_by_text("\\u202ereviewed").wait_for()
    for theme, width in (("light", 1440), ("dark", 390)):
        await page.emulate_media(color_scheme=theme)
        await page.set_viewport_size({"width": width, "height": 844})
        await assert_accessible(page)
        assert await page.evaluate("document.scrollingElement.scrollWidth") == width
