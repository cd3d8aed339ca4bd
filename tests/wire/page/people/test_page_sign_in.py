"""The built page in Chromium: people sign in by a name and a password, and are told why they may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import access_service_pb2 as pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
PASSWORD = "a long påss phrase & more"


def test_a_name_and_a_password_lead_to_the_view_that_was_asked_for(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, sign_in_with_a_password)


async def sign_in_with_a_password(visit: Visit) -> None:
    page = visit.page
    async with calls(visit.running, visit.running.user_token()) as admin:
        grace = await admin.user("grace")
        await admin.access.SetPassword(pb2.SetPasswordRequest(user_id=grace.user_id, password=PASSWORD))
    await page.goto(f"{visit.url}/cluster")
    await page.get_by_label("User").fill("grace")
    await page.get_by_label("Password").fill("a guess")
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("alert").get_by_text("The name or the password is wrong").wait_for()
    assert await page.get_by_label("User").input_value() == "grace"
    await assert_accessible(page)
    for _ in range(5):
        await page.get_by_label("Password").fill("another guess")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("button", name="Sign in").and_(page.locator(":enabled")).wait_for()
    await page.get_by_role("alert").get_by_text("Try again in a minute").wait_for()
    async with calls(visit.running, visit.running.user_token()) as admin:
        ada = await admin.user("ada")
        await admin.access.SetPassword(pb2.SetPasswordRequest(user_id=ada.user_id, password=PASSWORD))
    await page.get_by_label("User").fill("ada")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await page.get_by_role("tab", name="Queue").wait_for()
    assert page.url == f"{visit.url}/cluster"


def test_the_form_stays_where_the_link_names_a_user(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, follow_a_used_link)


async def follow_a_used_link(visit: Visit) -> None:
    page = visit.page
    await page.goto(f"{visit.url}/sign-in?code=ada.{'x' * 32}")
    await page.get_by_role("button", name="Sign in as ada").click()
    await page.get_by_role("alert").get_by_text("was used before or has expired").wait_for()
    await page.get_by_role("button", name="Another user").click()
    await page.get_by_label("Password").wait_for()
