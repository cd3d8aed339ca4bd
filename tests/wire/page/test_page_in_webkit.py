"""The built page in WebKit, which Safari and phones have: its main views are there, and are accessible."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.browser import AXE
from support.services.access import calls
from support.services.gateway import need_http
from support.services.page_visit import BEST, Visit, visit_page
from support.webkit import WebKit, webkit

from resolute.api.experiments.v1 import access_service_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
CHART = "//figure//*[@role='img']//canvas"
VIEWS = (
    ("experiments/1", CHART),
    ("experiments/1?tab=hparams", "//h2[.='Importance']"),
    ("trials/1", CHART),
    ("trials/1?tab=logs", "//*[@role='log']//*[contains(., 'epoch 2')]"),
    ("trials/1?tab=checkpoints", "//button[.='Register']"),
    ("compare?experiments=1,2", CHART),
    ("compare?experiments=1,2&tab=differences", "//th[@scope='row']"),
    ("now", "//h2[.='Needs somebody']"),
    ("cluster", "//td//a[contains(., 'first')]"),
    ("create", "//button[.='Create']"),
)
"""Views, and what is there once they are loaded."""


@pytest.fixture(autouse=True)
def slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "2")


def test_the_main_views_are_there_in_webkit(tmp_path: Path) -> None:
    with webkit() as window:
        visit_page(BUILT, tmp_path, lambda visit: look(visit, window))


async def look(visit: Visit, window: WebKit) -> None:
    for name in ("first", "second"):
        [trial] = await visit.create(name=name)
        await visit.report(trial)
        await visit.save(trial, b"weights")
    async with calls(visit.running, visit.running.user_token()) as admin:
        await admin.user("ada")
        made = await admin.access.CreateSignInCode(access_service_pb2.CreateSignInCodeRequest())
    await asyncio.to_thread(look_around, window, visit.url, made.code)


def look_around(window: WebKit, url: str, code: str) -> None:
    """Signs in, opens an experiment by a click, pauses it, and looks at the other views."""
    window.go(url)
    window.write("//input[@name='code']", code)
    window.click("//button[.='Sign in']")
    window.click("//a[.='first']")
    window.find(f"//section[@aria-label='Best trial'][contains(., '{BEST}')]")
    window.find(CHART)
    window.find("//*[@role='status'][contains(., 'live')]")
    window.click("//button[.='Pause']")
    window.click("//*[@role='dialog' or self::dialog]//button[.='Pause']")
    window.find("//button[.='Activate']")
    for path, there in VIEWS:
        window.go(f"{url}/{path}")
        window.find(there)
        assert_accessible(window, path)


def assert_accessible(window: WebKit, path: str) -> None:
    told = "({violations}) => done(violations.map(({id}) => id))"
    run = f"axe.run(document, {{resultTypes: ['violations']}}).then({told});"
    assert window.run(f"{AXE.read_text()}\n{run}") == [], path
