"""The built page in Chromium: dialogs and states without an address are accessible, and write no errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible_everywhere
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http

from resolute.api.experiments.v1 import user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(600), pytest.mark.sampled(1, group="the page in a browser")]
FAILURE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise ValueError("no such shard")
ValueError: no such shard"""
DIALOGS = (
    ("/experiments/1", "Edit"),
    ("/experiments/1", "Priority"),
    ("/experiments/1", "Fork"),
    ("/experiments/1", "Move"),
    ("/experiments/1", "Pause"),
    ("/experiments/1", "Kill"),
    ("/experiments/2", "Delete"),
    ("/experiments/1?tab=checkpoints", re.compile("^Register checkpoint")),
    ("/trials/1", "Edit"),
    ("/trials/1", "Continue"),
    ("/trials/1", "Kill"),
    ("/boards", "New report"),
    ("/boards", "Make this view a board"),
    ("/boards", "Go to …"),
    ("/tasks", "Run a command"),
    ("/tasks", "Start TensorBoard"),
    ("/tokens", "Make a token"),
    ("/cluster", "Change priority and slots of experiment 1"),
    ("/cluster?tab=workspaces", "New workspace"),
    ("/cluster?tab=workspaces", re.compile("^Roles in")),
    ("/cluster?tab=workspaces", re.compile("^Projects of")),
    ("/cluster?tab=users", re.compile("^Change user")),
    ("/now", re.compile("ada$")),
)
"""Where a button is that opens a dialog, and what it is called."""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_dialogs_and_states_without_an_address_are_accessible(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_states, seconds=550)


async def look_at_states(visit: Visit) -> None:
    page = visit.page
    failed = await visit.fail("failed", FAILURE)
    [trial] = await visit.create(name="alive")
    await visit.report(trial)
    await visit.save(trial, b"weights")
    await write_notes(visit, trial)
    await visit.sign_in(role=user_pb2.USER_ROLE_ADMIN)
    await page.goto(f"{visit.url}/experiments/{failed.experiment_number}")
    await page.get_by_text("ValueError: no such shard").first.wait_for()
    await assert_accessible_everywhere(page)
    await page.goto(f"{visit.url}/trials/{failed.number}")
    await page.get_by_text("ValueError: no such shard").first.wait_for()
    await assert_accessible_everywhere(page)
    for path in (f"/experiments/{trial.experiment_number}", f"/trials/{trial.number}"):
        await page.goto(visit.url + path)
        await page.get_by_role("region", name="Notes").get_by_text("Look").wait_for()
        await assert_accessible_everywhere(page)
    swapped = {"experiments/1": trial.experiment_number, "experiments/2": failed.experiment_number}
    for path, button in DIALOGS:
        at = re.sub(r"experiments/\d", lambda found: f"experiments/{swapped[found.group()]}", path)
        at = at.replace("trials/1", f"trials/{trial.number}")
        name = (
            button.replace("experiment 1", f"experiment {trial.experiment_number}")
            if isinstance(button, str)
            else button
        )
        await page.goto(visit.url + at)
        await page.get_by_role("button", name=name, exact=isinstance(name, str)).first.click()
        await page.get_by_role("dialog").wait_for()
        await assert_accessible_everywhere(page)
        await page.keyboard.press("Escape")
        await page.get_by_role("dialog").wait_for(state="detached")


async def write_notes(visit: Visit, trial: Any) -> None:
    key = {"trial_id": trial.trial_id}
    written = {"notes": "Look at *this*.", "labels": ["kept"]}
    paths = {"paths": ["notes", "labels"]}
    await visit.caller.call(
        "UpdateTrial", token=visit.caller.admin, key=key, trial=written, update_mask=paths
    )
    await visit.caller.call(
        "UpdateExperiment",
        token=visit.caller.admin,
        key={"experiment_id": trial.experiment_id},
        experiment=written,
        update_mask=paths,
    )


def test_notes_and_labels_of_a_trial_are_written_and_taken_back(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, write_of_a_trial)


async def write_of_a_trial(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{trial.number}")
    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Labels").fill("odd, odd, kept")
    await page.get_by_label("Notes").fill("It *diverges* here.")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_role("region", name="Notes").get_by_text("diverges").wait_for()
    await page.get_by_role("button", name="Undo").click()
    await page.get_by_role("region", name="Notes").wait_for(state="detached")
