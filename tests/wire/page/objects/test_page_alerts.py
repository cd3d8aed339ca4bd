"""The built page in Chromium: admins set alerts, send a test, and see what was sent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.editor import write
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http
from support.services.stand_ins.alert_receivers import SECRET, receivers

from resolute.api.experiments.v1 import user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    monkeypatch.setenv("RESOLUTE_ALERTS_ALLOWED", "127.0.0.1")


def test_an_admin_sets_alerts_and_sees_what_was_sent(tmp_path: Path) -> None:
    with receivers() as servers:

        async def scenario(visit: Visit) -> None:
            await set_alerts(visit, servers.url)

        visit_page(BUILT, tmp_path, scenario)
        assert [body["on"] for body in servers.received.bodies["webhook"].values()] == ["test", "experiment"]


async def set_alerts(visit: Visit, url: str) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.sign_in(role=user_pb2.USER_ROLE_ADMIN)
    async with calls(visit.running, visit.running.user_token()) as admin:
        await admin.workspace("vision")
    await page.goto(f"{visit.url}/cluster?tab=alerts")
    editor = page.get_by_role("textbox", name="Alerts")
    await page.get_by_text("Nothing yet.").wait_for()
    await page.get_by_role("button", name="Begin with an example").click()
    await page.get_by_text("hooks.slack.com").wait_for()
    await write(editor, "endpoints: []\nrules:\n- {on: experiment, to: [nobody]}\n")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("button", name="line 3").wait_for()
    await page.get_by_text("there is no endpoint 'nobody'").wait_for()
    await assert_accessible(page)

    endpoint = f"- {{name: own, type: webhook, url: '{url}/webhook', secret: {SECRET}}}"
    await write(
        editor, f"endpoints:\n{endpoint}\nrules:\n- {{on: experiment, states: [CANCELED], to: [own]}}\n"
    )
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("status").get_by_text("Saved.").wait_for()
    await page.get_by_text("(hidden)").last.wait_for()
    assert SECRET not in await editor.inner_text()
    await page.get_by_role("button", name="Send own a test").click()
    await page.get_by_role("status").get_by_text("own took a test.").wait_for()
    experiment = {"experiment_id": trial.experiment_id}
    await visit.caller.call("KillExperiment", token=visit.caller.admin, experiment=experiment)
    row = page.get_by_role("row", name=re.compile(re.escape(MARKUP)))
    await row.get_by_text("delivered").wait_for()
    await assert_accessible(page)
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.emulate_media(color_scheme="dark")
    await assert_accessible(page)
    assert await page.evaluate("document.scrollingElement.scrollWidth") == 390

    await page.get_by_label("Alerts of").select_option("workspace vision")
    await page.wait_for_url("**of=**")
    await page.get_by_role("button", name="Begin with an example").wait_for()


def test_who_is_no_admin_sees_no_alerts(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, only_look)


async def only_look(visit: Visit) -> None:
    await visit.sign_in()
    await visit.page.goto(f"{visit.url}/cluster?tab=alerts")
    await visit.page.get_by_text(re.compile("set by admins.*this needs the role admin")).wait_for()
    await assert_accessible(visit.page)
