"""The built page in Chromium: what is asked before a command or TensorBoard is started, and who may."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http

from resolute.api.experiments.v1 import experiment_pb2, user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_tensorboard_of_an_experiment_and_a_trial_is_asked_for(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, ask_for_tensorboard)


async def ask_for_tensorboard(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.sign_in()
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("link", name="TensorBoard").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_label("Experiments and trials")
    assert await field.input_value() == str(trial.experiment_number)
    await field.fill("1, x2")
    await dialog.get_by_role("alert").wait_for()
    assert await dialog.get_by_role("button", name="Start").is_disabled()
    await assert_accessible(page)
    await field.fill("1 t99")
    await dialog.get_by_role("button", name="Start").click()
    await dialog.get_by_role("alert").get_by_text("99").wait_for()
    await field.fill(f"{trial.experiment_number} t{trial.number}")
    await dialog.get_by_role("button", name="Start").click()
    await page.get_by_text("does not listen yet").wait_for()

    kinds = [experiment_pb2.EXPERIMENT_KIND_TENSORBOARD]
    listed = await visit.caller.call("ListExperiments", token=visit.caller.admin, kinds=kinds)
    [task] = listed.experiments
    assert task.name == f"TensorBoard (experiment {trial.experiment_number}, trial {trial.number})"


def test_who_may_only_look_starts_no_task(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, only_look)


async def only_look(visit: Visit) -> None:
    page = visit.page
    await visit.create()
    await visit.sign_in(role=user_pb2.USER_ROLE_VIEWER)
    await page.goto(f"{visit.url}/tasks")
    await page.get_by_text(re.compile("this needs the role editor")).wait_for()
    assert await page.get_by_role("button").filter(has_text=re.compile("command|TensorBoard")).count() == 0
    await page.goto(f"{visit.url}/experiments/1")
    await page.get_by_text(re.compile("this needs the role editor")).wait_for()
    assert await page.get_by_role("link", name="TensorBoard").count() == 0
