"""The built page in Chromium: what people ask, each answered within the clicks that the pages promise."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pages.visit import BEST, Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute.api.checkpoints.v1.media_pb2 import MediaKind as Kind  # noqa: E402 - skipped where HTTP cannot be served
from resolute.core.media.images import image_content  # noqa: E402
from resolute_gateway.requirements import BUILT  # noqa: E402

pytestmark = [pytest.mark.timeout(600), pytest.mark.sampled(1, group="the page in a browser")]
PAGE = Path(__file__).parents[4] / "docs/gateway.md"
SEARCH = {
    "hyperparameters": {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 100}, "max_trials": 2},
}
FAILURE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise ValueError("no such shard")
ValueError: no such shard"""
IMAGES = [
    {"name": "samples", "kind": Kind.MEDIA_KIND_IMAGE, "steps_completed": steps, "content": content}
    for steps, content in ((10, image_content(np.zeros((8, 8)))), (20, image_content(np.ones((8, 8)))))
]
_SECONDS = 500


@pytest.fixture(autouse=True)
def slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "4")


@dataclass
class Hand:
    """What a person does, counted: clicks, keys, and choices in a list, but not text that is typed."""

    page: Any
    done: int = 0

    async def click(self, role: str, name: str, **options: Any) -> None:
        self.done += 1
        await self.page.get_by_role(role, name=name, **{"exact": True, **options}).first.click()

    async def press(self, key: str) -> None:
        self.done += 1
        await self.page.keyboard.press(key)

    async def open(self, name: str) -> None:
        await self.click("link", name)
        await self.page.get_by_role("heading", name=name).wait_for()


async def best(hand: Hand) -> None:
    await hand.open("first")
    card = hand.page.get_by_role("region", name="Best trial")
    await card.get_by_text(str(BEST)).first.wait_for()
    await card.get_by_text("rate").first.wait_for()


async def reason(hand: Hand) -> None:
    await hand.open("broken")
    await hand.page.get_by_text("ValueError: no such shard").first.wait_for()
    await hand.page.get_by_role("link", name=re.compile("^Trial ")).first.wait_for()


async def rate(hand: Hand) -> None:
    await hand.click("link", "Now")
    await hand.page.get_by_role("link", name=re.compile("first")).first.wait_for()


async def hyperparameter(hand: Hand) -> None:
    """The table of trials begins with the best, and has a column for each hyperparameter."""
    await hand.open("first")
    table = hand.page.get_by_role("table")
    await table.get_by_role("columnheader", name="rate", exact=True).wait_for()
    await (
        table.get_by_role("columnheader", name="Best loss")
        .and_(hand.page.locator("[aria-sort=ascending]"))
        .wait_for()
    )


async def download(hand: Hand) -> None:
    await hand.open("first")
    async with hand.page.expect_download():
        await hand.click("link", "Download the best")


async def compare(hand: Hand) -> None:
    await hand.click("checkbox", "Select experiment 1")
    await hand.click("checkbox", "Select experiment 2")
    hand.done += 1
    await hand.page.get_by_role("main").get_by_role("link", name="Compare").click()
    await hand.page.wait_for_url(re.compile("compare"))


async def differences(hand: Hand) -> None:
    await compare(hand)
    await hand.click("tab", "Differences")
    await hand.page.get_by_role("rowheader", name="rate").wait_for()


async def overlay(hand: Hand) -> None:
    """Two that are selected are drawn below the list."""
    await hand.click("checkbox", "Select experiment 1")
    await hand.click("checkbox", "Select experiment 2")
    drawn = hand.page.get_by_role("region", name="Curves of what is selected")
    chart = drawn.get_by_role("img", name="validation/loss")
    await chart.wait_for()
    await drawn.get_by_label("Legend").get_by_role("listitem").nth(1).wait_for()
    await chart.click(trial=True)  # nothing lies above it


async def slots_by_holder(hand: Hand) -> None:
    await hand.click("link", "Queue and cluster")
    await hand.page.get_by_text("slots in use").first.wait_for()


async def machine(hand: Hand) -> None:
    await hand.open("first")
    await hand.click("link", "Machine")
    await hand.page.wait_for_url(re.compile("trials/.*tab=machine"))


async def media(hand: Hand) -> None:
    await hand.open("first")
    logged = hand.page.get_by_role("region", name="Images that were logged last")
    await logged.get_by_text("samples of trial 1 at step 20").wait_for()
    assert await logged.get_by_role("img").count() == 1


async def share(hand: Hand) -> None:
    """The address is the link: whoever opens it sees the same."""
    await hand.page.get_by_role("link", name="first", exact=True).wait_for()


async def keyboard(hand: Hand) -> None:
    await hand.page.get_by_role("link", name="first", exact=True).wait_for()
    await hand.press("j")
    await hand.press("Enter")
    await hand.page.wait_for_url(re.compile(r"experiments/\d"))


async def group(hand: Hand) -> None:
    await hand.open("first")
    hand.done += 2  # the menu, and the choice in its list
    await hand.page.get_by_text("Lines", exact=True).click()
    await hand.page.get_by_label("Group by").select_option("rate")
    await hand.page.wait_for_url(re.compile("group=rate"))


async def board(hand: Hand) -> None:
    await hand.click("button", "Make this view a board")
    await hand.page.get_by_role("dialog").get_by_label("Name").fill("mine")
    await hand.click("button", "Save")
    await hand.page.get_by_role("dialog").wait_for(state="detached")


async def annotate(hand: Hand) -> None:
    await hand.open("first")
    await hand.click("button", "Edit")
    await hand.page.get_by_label(re.compile("^Notes")).fill("Look at *this*.")
    await hand.click("button", "Save")
    await hand.page.get_by_role("region", name="Notes").get_by_text("this").wait_for()


QUESTIONS: dict[str, Callable[[Hand], Awaitable[None]]] = {
    "Which trial is best, and with which hyperparameters?": best,
    "Why did this fail?": reason,
    "Does it train, how fast, and when is it done?": rate,
    "Which learning rates do the ten best trials have?": hyperparameter,
    "Download the best checkpoint": download,
    "What changed between two experiments?": differences,
    "Who uses the GPUs?": slots_by_holder,
    "What did the GPUs of the best trial do?": machine,
    "Which images did my script log?": media,
    "Show a colleague the same": share,
    "Open an experiment by keys": keyboard,
    "Overlay the curves of two experiments": overlay,
    "Group the curves by a hyperparameter": group,
    "Keep this view as a board": board,
    "Write a note": annotate,
}


def test_each_question_takes_the_clicks_that_the_documentation_says(tmp_path: Path) -> None:
    table = PAGE.read_text().partition("| question | clicks | how |")[2].partition("\n\n")[0]
    promised = dict(re.findall(r"^\| (.+?) \| (\d+) \|", table, re.MULTILINE))
    assert set(promised) == set(QUESTIONS)
    counted: dict[str, str] = {}

    async def ask(visit: Visit) -> None:
        for name in ("first", "second"):
            for trial in await visit.create(trials=2, name=name, **SEARCH):
                await visit.report(trial)
                await visit.save(trial, b"weights")
                assert not await visit.log(trial, IMAGES)
        await visit.fail("broken", FAILURE)
        await visit.sign_in()
        for question, answer in QUESTIONS.items():
            await visit.page.goto(visit.url)
            hand = Hand(visit.page)
            await answer(hand)
            counted[question] = str(hand.done)

    visit_page(BUILT, tmp_path, ask, seconds=_SECONDS)
    assert counted == promised
