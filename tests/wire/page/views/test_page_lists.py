"""The built page in Chromium: lists of no, one and many trials, long names, columns of metrics, epochs."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible, assert_fits
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http
from support.services.metrics import block

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
LONG = "n" * 200
MANY = 1500
CUT_CRUMB = """(() => {
    const last = document.querySelector("header nav > :last-child"), nav = last.parentElement;
    const hidden = last.getBoundingClientRect().right - nav.getBoundingClientRect().right;
    return Math.max(last.scrollWidth - last.clientWidth, Math.ceil(hidden), 0);
})()"""
"""How many pixels of what the path ends with are hidden."""
SCREENS = ((1440, 900), (1024, 768), (390, 844))


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def search_of(trials: int) -> dict[str, Any]:
    method = {"name": "random", "max_trials": trials, "max_concurrent_trials": trials}
    return {
        "hyperparameters": {LONG: {"type": "double", "minval": 0.0, "maxval": 1.0}},
        "searcher": {**method, "metric": "loss", "max_length": {"batches": 100}},
    }


def test_lists_of_any_length_and_long_names_fit_the_screen(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_lists)


async def look_at_lists(visit: Visit) -> None:
    page, caller = visit.page, visit.caller
    await visit.create(name=LONG, labels=[LONG, "b"], **search_of(1))
    empty = {"external_run_id": str(uuid.uuid4()), "external_experiment_id": "empty", "experiment_only": True}
    await caller.call("BeginRun", token=caller.admin, name="empty", **empty)
    await visit.create(name="many", **search_of(MANY))
    await visit.sign_in()
    for path, text in (
        ("", LONG),
        ("experiments/1", "Search random, 1 trial"),
        ("experiments/2", "No trials yet"),
        ("experiments/3", f"1\u201350 of {MANY}"),
        (f"experiments/3?from={MANY - 20}&sort=number", f"{MANY - 19}\u2013{MANY} of {MANY}"),
        ("trials/1", "experiment 1"),
        (f"experiments/3?from={MANY + 50}", f"None after the first {MANY}"),
    ):
        for width, height in SCREENS:
            await page.set_viewport_size({"width": width, "height": height})
            await page.goto(f"{visit.url}/{path}")
            await page.get_by_text(text).first.wait_for()
            await assert_fits(page)
            if path.startswith("trials"):
                assert await page.evaluate(CUT_CRUMB) == 0, width
        await assert_accessible(page)
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.goto(f"{visit.url}/experiments/3?sort=number")
    await page.get_by_role("button", name="Next").click()
    await page.get_by_text(f"51\u2013100 of {MANY}").wait_for()
    await page.get_by_role("button", name="Previous").click()
    await page.get_by_text(f"1\u201350 of {MANY}").wait_for()


def test_columns_show_values_of_any_metric_and_charts_count_epochs(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, show_metrics)


async def show_metrics(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.report(trial)
    await visit.sign_in()
    await page.goto(f"{visit.url}/experiments/{trial.experiment_number}?axis=epochs")
    await page.get_by_text("No epochs are reported with these points").wait_for()
    await assert_accessible(page)
    await report_epochs(visit, trial)
    await page.get_by_text("No epochs are reported with these points").wait_for(state="detached")
    for path, menu in (("", "Columns"), (f"experiments/{trial.experiment_number}", "Metrics")):
        await page.goto(f"{visit.url}/{path}")
        await page.locator("summary", has_text=menu).click()
        for choice, value in (("min", "70.5"), ("max", "90.25"), ("last", "80.13")):
            await page.get_by_label("Which value of a metric").select_option(choice)
            await page.get_by_label("Metric of a column").fill("training/speed")
            await page.get_by_role("button", name="Add", exact=True).click()
            await page.get_by_role("cell", name=value).wait_for()
        await assert_accessible(page)
        await page.evaluate("document.activeElement.blur()")
        await page.keyboard.press("Escape")  # wherever the focus is
        await page.get_by_label("Metric of a column").wait_for(state="detached")
        await page.locator("summary", has_text=menu).click()
        if menu == "Metrics":
            await page.get_by_role("button", name="max training/speed").click()
            await page.wait_for_url("**sort=max%3A**")
            await page.get_by_role("columnheader", name="max training/speed ↑").wait_for()
            await page.locator("summary", has_text=menu).click()  # a click elsewhere has closed it
        await page.get_by_label("min training/speed").click()  # the box goes with the column
        await page.get_by_role("cell", name="70.5").wait_for(state="detached")
        await page.reload()
        await page.get_by_role("cell", name="90.25").wait_for()
        assert not await page.get_by_role("cell", name="70.5").count()
    await page.goto(visit.url)  # the columns are the person's, also where the URL names none
    await page.get_by_role("cell", name="90.25").wait_for()

    await page.goto(f"{visit.url}/experiments/{trial.experiment_number}")
    await page.get_by_label("Metric", exact=True).fill("training/loss")
    await page.get_by_label("Metric", exact=True).press("Enter")
    await page.get_by_role("button", name="Epochs").click()
    chart = page.get_by_role("img", name="training/loss")
    # Another chart comes when the epochs have: one that was pointed at before tells nothing.
    while not await page.locator(".tip", has_text=re.compile(r"\b4\b.*trial", re.DOTALL)).count():
        box = await chart.locator(".u-over").bounding_box()
        for beside in (2, 1):
            await page.mouse.move(box["x"] + box["width"] - beside, box["y"] + box["height"] / 2)
    assert "axis=epochs" in page.url


async def report_epochs(visit: Visit, trial: Any) -> None:
    """Reports three points of a metric, and how many epochs had passed at each."""
    owner, token = visit.owner(trial)
    steps = [10, 20, 40]
    reports = [block("training", range(3), steps, epochs=[1, 2, 4], speed=[70.5, 90.25, 80.125])]
    await visit.caller.call(
        "IngestReports",
        token=token,
        source="epochs",
        first_sequence=0,
        count=3,
        blocks=reports,
        searcher_metric="loss",
        smaller_is_better=True,
        **owner,
    )


def test_experiments_are_found_by_metrics_sorted_by_the_best_and_selected(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, find_experiments)


async def find_experiments(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create(name="first")
    await visit.report(trial)
    await visit.create(name="second", hyperparameters={"rate": 0.5})
    await visit.sign_in()
    await page.get_by_text("2 experiments with 2 trials").wait_for()
    first, second = (page.get_by_role("link", name=name) for name in ("first", "second"))
    field = page.get_by_label("Filter experiments")
    await page.get_by_role("cell", name="0.025").wait_for()
    for text, here, gone in (
        ("loss < 0.1", first, second),
        ("rate = 0.5 and not loss < 0.1", second, first),
        ("state = running or name = second", second, None),
    ):
        await field.fill(text)
        await here.wait_for()
        if gone:
            await gone.wait_for(state="detached")
    await field.fill("los < 0.1")
    alert = page.get_by_role("alert")
    await alert.get_by_text("los: there is no such field").wait_for()
    await assert_accessible(page)
    await field.fill("state = burning")
    await alert.get_by_text("running, active, paused").wait_for()
    await field.fill("")
    await alert.wait_for(state="detached")

    await page.get_by_role("button", name="Best").click()
    await page.wait_for_url("**sort=best_validation**")
    await page.get_by_role("row").nth(1).get_by_role("link", name="first").wait_for()
    await page.get_by_role("button", name="Best").click()
    await page.wait_for_url("**sort=best_validation+desc**")
    await page.get_by_role("button", name="Best").click()
    await page.locator("summary", has_text="Select").click()
    await page.get_by_role("button", name="The best 10").click()
    await page.get_by_text("2 selected").wait_for()
    await assert_accessible(page)
    await page.keyboard.press("Escape")
    await page.goto(f"{visit.url}/now")
    await page.get_by_role("link", name="0.025").wait_for()
