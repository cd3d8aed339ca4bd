"""The page below a path of a proxy, as JupyterHub and Open OnDemand show what runs on their machines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from front.proxies import below_a_path
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

HUB = "/user/ada/proxy/8081"


@pytest.mark.timeout(360)
def test_the_page_works_below_a_path_and_asks_for_nothing_outside_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    nginx = tmp_path / "nginx"
    nginx.mkdir()

    async def visit_through_hub(visit: Visit) -> None:
        port = urlsplit(visit.url).port
        assert port is not None
        with below_a_path(nginx, HUB, http_port=port) as url:
            await _visit(dataclasses.replace(visit, url=f"{url}/"))

    visit_page(BUILT, tmp_path, visit_through_hub)


async def _visit(visit: Visit) -> None:
    page = visit.page
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    [trial] = await visit.create()
    await visit.sign_in()

    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("heading", name=MARKUP).wait_for()
    assert page.url.startswith(f"{visit.url}experiments/")
    await page.reload()
    await page.get_by_role("heading", name=MARKUP).wait_for()
    await page.get_by_role("row").nth(1).get_by_role("link").click()
    await page.get_by_role("tab", name="Logs").click()
    await page.get_by_role("banner").get_by_role("status").get_by_text("live", exact=True).wait_for()
    await visit.say(trial, "a line that comes later")
    await page.get_by_text("a line that comes later").wait_for()
    assert page.url.startswith(f"{visit.url}trials/")

    assert len(asked) > 5
    assert [one for one in asked if not one.startswith((visit.url, "blob:", "data:"))] == []
