"""Media in the page, by steps and side by side, whatever a script logs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute.api.checkpoints.v1 import media_pb2  # noqa: E402 - skipped where HTTP cannot be served
from resolute.core.media.audio import audio_content  # noqa: E402
from resolute.core.media.histograms import histogram_content  # noqa: E402
from resolute.core.media.images import image_content  # noqa: E402
from resolute.core.media.tables import table_content  # noqa: E402
from resolute_gateway.requirements import BUILT  # noqa: E402

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
RTL = "\u202egnp.exe"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
WIDE = "W" * 500
PICTURES = os.environ.get("RESOLUTE_TEST_PICTURES", "")
"""Folder that gets pictures of the views, for people; empty for none."""
TALL = {"width": 1440, "height": 2600}
"""Only what is seen is loaded."""
Kind = media_pb2.MediaKind


def test_media_by_steps_and_side_by_side(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_media)


async def look_at_media(visit: Visit) -> None:
    page = visit.page
    await page.set_viewport_size(TALL)
    first, second = await visit.create(
        trials=2,
        searcher={
            "name": "grid",
            "metric": "loss",
            "max_length": {"batches": 100},
        },
        hyperparameters={"lr": {"type": "categorical", "vals": [0.1, 0.2]}},
        resources={"slots_per_trial": 1, "max_slots": 2},
    )
    await log(visit, first, shade=0.2)
    await log(visit, second, shade=0.8)
    refused = await visit.log(first, [media("attack", Kind.MEDIA_KIND_IMAGE, SVG)], source="attack")
    assert [one.message for one in refused] == [
        "media 'attack' is not kept: it is in none of the formats PNG, JPEG, GIF and WebP; convert it first"
    ]
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{first.number}?tab=media")
    await pictures_by_steps(visit)
    await take_picture(visit, "before")
    await everything_else(visit)
    await take_picture(visit, "trial")
    await assert_accessible(page)
    await page.set_viewport_size({**TALL, "width": 390})
    assert not await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    await take_picture(visit, "narrow")
    await page.set_viewport_size(TALL)
    await page.goto(f"{visit.url}/experiments/1?tab=media&at=10")
    samples = page.get_by_role("region", name="images samples")
    await samples.get_by_text(f"trial {second.number}").wait_for()
    assert await samples.get_by_role("img").count() == 4
    table = page.get_by_role("table").first
    assert (await table.get_by_role("columnheader").all_inner_texts())[:2] == ["trial", "label"]
    await take_picture(visit, "experiment")
    await assert_accessible(page)


async def pictures_by_steps(visit: Visit) -> None:
    """The slider shows the images of a step, and the URL has it."""
    page = visit.page
    samples = page.get_by_role("region", name="images samples")
    await samples.get_by_text("step 20", exact=True).wait_for()
    images = samples.get_by_role("img")
    await page.wait_for_function(
        "[...document.images].every((one) => one.complete && one.naturalWidth === 32)"
    )
    assert await images.count() == 2
    slider = samples.get_by_role("slider")
    await slider.focus()
    await page.keyboard.press("ArrowLeft")
    await samples.get_by_text("step 10", exact=True).wait_for()
    assert "at=10" in page.url
    await samples.get_by_text("of step 10").first.wait_for()
    # Everything else is at that step too.
    await page.get_by_role("region", name="text said").get_by_text("step 10", exact=True).wait_for()


async def everything_else(visit: Visit) -> None:
    """Histograms, texts, tables, sounds and figures are there, and what looks like markup is text."""
    page = visit.page
    await page.get_by_role("img", name="weights by steps; 100 values from").wait_for()
    said = page.get_by_role("region", name="text said")
    await said.get_by_text(f"<script>alert(1)</script> {MARKUP} \\u202e").wait_for()
    errors = page.get_by_role("region", name="tables errors")
    await errors.get_by_role("button", name="label").click()
    assert await errors.get_by_role("cell").first.inner_text() == "1"
    await errors.get_by_label("Filter rows of errors").fill("onerror")
    await errors.get_by_text("1 of 60 rows").wait_for()
    assert await errors.get_by_role("cell").nth(1).inner_text() == MARKUP
    sound = page.get_by_role("region", name="audio beep").locator("audio")
    await sound.evaluate(
        "(one) => new Promise((done) => { one.onloadedmetadata = done; one.load(); one.preload = 'auto' })"
    )
    assert await sound.evaluate("(one) => one.duration") == pytest.approx(0.5)
    await page.get_by_role("link", name="Download the figure").wait_for()
    assert await page.locator("h2").get_by_text(MARKUP).count() == 1
    assert await page.locator("h2").get_by_text("\\u202egnp.exe").count() == 1
    # The content of a text is no page of this origin, also where somebody opens it.
    address = await page.get_by_role("link", name="Download the figure").get_attribute("href")
    names = ["content-disposition", "content-security-policy", "content-type"]
    headers = await page.evaluate(
        "([url, names]) => fetch(url).then((answer) => names.map((name) => answer.headers.get(name)))",
        [address, names],
    )
    assert headers[0].startswith("attachment")
    assert headers[1].startswith("sandbox;")
    assert headers[2] == "application/octet-stream"


async def log(visit: Visit, trial: Any, *, shade: float) -> None:
    """Sends media of two steps, as the trial would."""
    random = np.random.default_rng(1)
    logged = []
    for step in (10, 20):
        for corner in (0.0, 1.0):
            pixels = np.full((32, 32, 3), shade)
            pixels[:16, :16] = corner
            pixels[16:, 16:] = random.random((16, 16, 3))
            caption = f"{MARKUP} of step {step}"
            logged.append(media("samples", Kind.MEDIA_KIND_IMAGE, image_content(pixels), step, caption))
        weights = histogram_content(random.normal(shade, step / 10, 100), bins=30)
        logged.append(media("weights", Kind.MEDIA_KIND_HISTOGRAM, weights, step))
        text = f"step {step}: <script>alert(1)</script> {MARKUP} {RTL}\nbelow"
        logged.append(media("said", Kind.MEDIA_KIND_TEXT, text.encode(), step))
    rows = [[number, "fine", number / 7] for number in range(2, 61)]
    table = table_content([*rows, [1, MARKUP, None]], ["label", MARKUP, "score"])
    sound = audio_content(np.sin(np.arange(4000)), sample_rate=8000)
    figure = b'{"data": [{"type": "scatter", "name": "<script>alert(1)</script>"}], "layout": {}}'
    logged += [
        media("errors", Kind.MEDIA_KIND_TABLE, table, 10),
        media("beep", Kind.MEDIA_KIND_AUDIO, sound, 10),
        media("drawn", Kind.MEDIA_KIND_FIGURE, figure, 10),
        media(MARKUP, Kind.MEDIA_KIND_TEXT, b"marked", 10),
        media(RTL, Kind.MEDIA_KIND_TEXT, b"turned", 10),
        media(WIDE, Kind.MEDIA_KIND_TEXT, WIDE.encode() * 20, 10, WIDE),
    ]
    for steps in range(30, 90, 10):
        values = histogram_content(random.normal(shade, steps / 10, 100), bins=30)
        logged.append(media("gradients", Kind.MEDIA_KIND_HISTOGRAM, values, steps))
    assert not await visit.log(trial, logged)


def media(
    name: str, kind: Kind.ValueType, content: bytes, step: int = 1, caption: str = ""
) -> dict[str, Any]:
    return {"name": name, "kind": kind, "content": content, "steps_completed": step, "caption": caption}


async def take_picture(visit: Visit, name: str) -> None:
    if PICTURES:
        await visit.page.screenshot(path=f"{PICTURES}/media-{name}.png", full_page=True)
