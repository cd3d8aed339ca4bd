"""The built page in Chromium: finding one's way in long logs, and in those of all trials of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http
from support.services.logs import columns, line

from resolute.api.logs.v1 import line_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
LINES, BATCH = 6000, 1000
FIRST_ERROR, BEGIN = 1500, 1_700_000_000
ODD = "\x1b[38;5;208mname\u202egpj.exe\x1b[0m " + "wide " * 200
SEARCH = {
    "hyperparameters": {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 100}, "max_trials": 2},
}


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_a_place_of_a_long_log_is_one_click_away(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_for_places)


async def look_for_places(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await write_long(visit, trial)
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{trial.number}?tab=logs")
    await seen(page, LINES - 1)
    await page.get_by_role("button", name="Beginning").click()
    await seen(page, 0)
    await page.get_by_role("button", name="First error").click()
    await seen(page, FIRST_ERROR)
    assert "line=" in page.url
    for number in (FIRST_ERROR - 20, FIRST_ERROR + 20):
        await seen(page, number, state="attached")  # what is around it

    await page.get_by_label("Find in lines").fill("number 4321 ")
    await seen(page, 4321)
    await page.get_by_role("button", name="Matches only").click()
    await page.get_by_role("button", name="Beginning").click()
    await seen(page, 0)
    await page.get_by_role("button", name="Next match").click()
    await seen(page, 4321)
    await page.get_by_role("button", name="Next match").click()
    await page.get_by_text("No line after this one matches.").wait_for()
    await page.keyboard.press("N")
    await page.get_by_text("No line before this one matches.").wait_for()
    await assert_accessible(page)

    moment = await page.evaluate("ms => new Date(ms).toString().slice(0, 24)", (BEGIN + 2345) * 1000)
    place = page.get_by_label("Go to a time or to the number of a line")
    await place.fill(moment)
    await place.press("Enter")
    await seen(page, 2345)
    await place.fill("soon")
    await place.press("Enter")
    await page.get_by_text("Write a time such as").wait_for()

    await page.get_by_label("Find in lines").fill("exe")
    await page.get_by_role("button", name="Matches only").click()
    text = page.get_by_text("name\\u202egpj.exe")
    await text.wait_for()
    assert await text.evaluate("one => getComputedStyle(one).color") != await page.evaluate(
        "getComputedStyle(document.body).color"
    )
    await broken(page)


async def broken(page: Any) -> None:
    """A long line is as wide as it is, or broken at the edge."""
    log = page.get_by_role("log")
    over = "one => one.scrollWidth - one.clientWidth"
    assert await log.evaluate(over) > 1000
    await page.get_by_role("button", name="Wrap").click()
    await page.wait_for_url("**wrap=1**")
    assert await log.evaluate(over) == 0
    end = page.locator(".line .text").last
    line, text = await end.locator("xpath=..").bounding_box(), await end.bounding_box()
    assert line["y"] + line["height"] >= text["y"] + text["height"], "the line has room for its text"
    await assert_accessible(page)
    await page.get_by_role("button", name="Wrap").click()


async def write_long(visit: Visit, trial: Any) -> None:
    """Sends a line a second, two that say that something failed, and one that is wide and odd."""
    owner, token = visit.owner(trial)
    for first in range(0, LINES, BATCH):
        lines = [
            line(
                ODD if number == LINES - 9 else f"number {number} of the log",
                seconds=BEGIN + number,
                level=line_pb2.LEVEL_ERROR if number in {FIRST_ERROR, 5000} else line_pb2.LEVEL_INFO,
            )
            for number in range(first, first + BATCH)
        ]
        await visit.caller.call(
            "IngestLines", token=token, source="s", first_sequence=first, lines=columns(lines), **owner
        )


async def seen(page: Any, number: int, *, state: str = "visible") -> None:
    await page.get_by_text(f"number {number} of the log", exact=True).wait_for(state=state)


def test_the_lines_of_all_trials_are_in_one_log_and_a_drag_chooses_their_time(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_all_trials)


async def look_at_all_trials(visit: Visit) -> None:
    page = visit.page
    trials = await visit.create(trials=2, **SEARCH)
    await visit.sign_in()
    await page.goto(f"{visit.url}/experiments/{trials[0].experiment_number}?tab=logs")
    for trial in trials:
        await visit.say(trial, f"from {trial.number}")
        await page.get_by_text(f"from {trial.number}", exact=True).wait_for()
    await page.get_by_role("log").get_by_role("link", name=str(trials[1].number), exact=True).wait_for()
    await assert_accessible(page)

    strip = page.get_by_title("Drag over a time")
    box = await strip.bounding_box()
    middle = box["y"] + box["height"] / 2
    await page.mouse.move(box["x"] + box["width"] * 0.2, middle)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] * 0.4, middle, steps=4)
    await page.mouse.up()
    await page.wait_for_url("**from=**until=**")
    await page.get_by_text("from 1", exact=True).wait_for(state="detached")  # its lines are of 1970
    await page.get_by_role("button", name="All times").click()
    await page.get_by_role("log").get_by_role("link", name=str(trials[1].number), exact=True).click()
    await page.wait_for_url(f"**/trials/{trials[1].number}?tab=logs&line=**")
    await page.get_by_text("from 2", exact=True).wait_for()
    assert not await page.get_by_text("from 1", exact=True).count()
