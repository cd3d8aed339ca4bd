"""The built page in Chromium: every view when narrow and dark, and many tabs."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible, assert_fits
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http
from support.services.metrics import block
from support.waiting import wait_until_async

from resolute_engines.kit.run_directories.container import RunContainer
from resolute_experiments.transitions.signals import allocation_id

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
SEARCH = {
    "hyperparameters": {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 100}, "max_trials": 3},
}
VIEWS = (
    ("/", "link", MARKUP),
    ("/experiments/1", "img", "validation/loss"),
    ("/experiments/1?tab=search", "cell", "The search began"),
    ("/experiments/1?tab=hparams", "heading", "Importance"),
    ("/experiments/1?tab=logs", "button", "Follow"),
    ("/experiments/1?tab=checkpoints", "cell", "40"),
    ("/experiments/1?tab=code", "tab", "Code"),
    ("/experiments/1?tab=config", "heading", "Config"),
    ("/trials/1", "img", "training/loss"),
    ("/trials/1?tab=logs", "button", "Follow"),
    ("/trials/1?tab=runs", "heading", "What happened"),
    ("/trials/1?tab=machine", "tab", "Machine"),
    ("/trials/1?tab=media", "tab", "Media"),
    ("/trials/1?tab=why", "listitem", ""),
    ("/trials/1?tab=details", "heading", "Environment"),
    ("/compare?trials=1,2", "img", "training/loss"),
    ("/compare?trials=1,2&tab=differences", "rowheader", "rate"),
    ("/compare?trials=1,2&tab=code", "tab", "Code"),
    ("/now", "heading", "Needs somebody"),
    ("/models", "searchbox", "Filter models by name"),
    ("/boards", "button", "Make this view a board"),
    ("/create", "button", "Create"),
    ("/tasks", "button", "Run a command"),
    ("/tokens", "cell", "of a browser"),
    ("/cluster", "link", MARKUP),
    ("/cluster?tab=workspaces", "cell", "Uncategorized"),
    ("/cluster?tab=storage", "link", MARKUP),
    ("/cluster?tab=alerts", "tab", "Alerts"),
    ("/cluster?tab=users", "cell", "admin"),
)
"""Where each view is, and the role and name of something that is there once it is loaded."""
SCREENS = ((1440, 900), (1024, 768), (390, 844))
"""Widths and heights of those that every view is looked at on, in both themes."""
THEMES = ("light", "dark")
PICTURES = os.environ.get("RESOLUTE_TEST_PICTURES", "")
"""Folder that gets pictures of the views, for people; empty for none."""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


@pytest.mark.timeout(1200)
def test_every_view_is_accessible_and_fits_every_screen_in_both_themes(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_every_view, seconds=1100)


async def look_at_every_view(visit: Visit) -> None:
    page = visit.page
    trials = await visit.create(trials=3, **SEARCH)
    for trial in trials:
        await visit.report(trial)
    await visit.save(trials[0], b"weights")
    await page.goto(visit.url)
    await page.get_by_label("One-time code").wait_for()
    await assert_accessible(page)
    await visit.sign_in()
    for path, role, name in VIEWS:
        await page.goto(visit.url + path)
        for width, height in SCREENS:
            await page.set_viewport_size({"width": width, "height": height})
            await page.get_by_role(role, name=name).first.wait_for()
            for theme in THEMES:
                await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                await assert_accessible(page)
                if PICTURES:
                    name_of_file = re.sub(r"\W+", "-", path).strip("-") or "experiments"
                    await page.screenshot(path=f"{PICTURES}/{name_of_file}-{width}-{theme}.png")
            await assert_fits(page)
    await page.keyboard.press("?")
    await page.get_by_role("dialog").get_by_role("heading", name="Keys").wait_for()
    await assert_accessible(page)


def test_eight_tabs_are_live_at_once_and_a_ninth_loads(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, open_many)


async def open_many(visit: Visit) -> None:
    [trial] = await visit.create()
    await visit.sign_in()
    tabs = [visit.page]
    for number in range(8):
        tab = await visit.page.context.new_page()
        await tab.goto(f"{visit.url}/trials/{trial.number}?tab=logs" if number % 2 else visit.url)
        tabs.append(tab)
    for tab in tabs:
        await tab.get_by_role("status").get_by_text("live", exact=True).wait_for()
    await visit.say(trial, "seen in every tab of a log")
    caller = visit.caller
    await caller.call(
        "PauseExperiment", token=caller.admin, experiment={"experiment_id": trial.experiment_id}
    )
    for number, tab in enumerate(tabs):
        is_log = number and not number % 2
        await tab.get_by_text("seen in every tab of a log" if is_log else re.compile("paus")).first.wait_for()
        assert await tab.get_by_role("status").inner_text() == "live"


def test_runs_whose_machine_was_taken_away_say_how_many_steps_that_cost(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_lost_steps)


async def look_at_lost_steps(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create(resources={"slots_per_trial": 1, "preemptible": True})
    await visit.report(trial)
    await visit.save(trial, b"weights of step 40")
    await report_three_steps_more(visit, trial)
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{trial.number}?tab=runs")
    await end_run(visit, trial, run=1)
    await lost(page, run=1).get_by_text("3 steps lost", exact=True).wait_for()
    await end_run(visit, trial, run=2)
    await lost(page, run=2).get_by_text("0 steps lost", exact=True).wait_for()
    await lost(page, run=3).get_by_text("\u2013", exact=True).wait_for()
    assert await lost(page, run=1).inner_text() == "3 steps lost"
    await assert_accessible(page)


async def report_three_steps_more(visit: Visit, trial: Any) -> None:
    """Reports steps that no checkpoint has."""
    owner, token = visit.owner(trial)
    await visit.caller.call(
        "IngestReports",
        token=token,
        source="later",
        first_sequence=0,
        count=3,
        blocks=[block("training", range(3), [41, 42, 43], loss=[0.5, 0.5, 0.5])],
        searcher_metric="loss",
        smaller_is_better=True,
        **owner,
    )


async def end_run(visit: Visit, trial: Any, *, run: int) -> None:
    """Ends all of a run at once, as the end of its machine does."""
    runs = visit.folder / "data/experiments/runs"
    container = RunContainer(runs, allocation_id(trial.trial_id, run), 0)
    await wait_until_async(lambda: container.supervisor is not None)
    await asyncio.to_thread(container.kill)


def lost(page: Any, *, run: int) -> Any:
    """The cell of a run that says how many steps its end lost."""
    table = page.get_by_label("Runs").locator("table")
    row = table.locator("tbody tr").filter(
        has=page.locator("td:first-child", has_text=re.compile(f"^{run}$"))
    )
    return row.get_by_title("Steps that the next run repeats")
