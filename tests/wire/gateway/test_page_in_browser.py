"""The built page in Chromium, in front of all services: sign in, see what happens, steer, read."""

from __future__ import annotations

import asyncio
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller
from support.browser import PATIENCE_MS, assert_accessible, browser_page, need_browser
from support.services.access import calls
from support.services.gateway import gateway, need_http
from support.services.in_process import Running, serving
from support.services.logs import columns, line
from support.services.metrics import block

from resolute.api.experiments.v1 import access_service_pb2
from resolute.api.logs.v1 import line_pb2
from resolute_embedded.blueprints import BLUEPRINTS
from resolute_serving.auth.tokens import load_or_create_key
from resolute_serving.context import TrialRun

need_http()

from resolute_gateway.web.page_files import BUILT  # noqa: E402 - skipped where HTTP cannot be served

BEST = 0.025
MARKUP = "<img src=x onerror=alert(1)>"
CONFIG = {
    "name": MARKUP,
    "entrypoint": "sleep 600",
    "resources": {"slots_per_trial": 1},
    "searcher": {"name": "single", "metric": "loss", "max_length": {"batches": 100}},
}


async def sign_in_code(running: Running) -> str:
    async with calls(running, running.user_token()) as admin:
        await admin.user("ada")
        return str((await admin.access.CreateSignInCode(access_service_pb2.CreateSignInCodeRequest())).code)


async def report(caller: Caller, running: Running, trial: Any) -> None:
    """Sends a curve with a gap, a validation, and lines of two levels."""
    run = TrialRun(trial.trial_id, 1, trial.experiment_id, "ada", "w")
    owner = {"trial_id": run.trial_id, "run": 1, "source": "s", "experiment_id": run.experiment_id}
    token = running.trial_token(run)
    steps = list(range(1, 41))
    values = [float("nan") if step == 20 else 1 / step for step in steps]
    points = [block("training", range(40), steps, loss=values), block("validation", [40], [40], loss=[BEST])]
    selection = {"searcher_metric": "loss", "smaller_is_better": True}
    await caller.call(
        "IngestReports", token=token, first_sequence=0, count=41, blocks=points, **selection, **owner
    )
    lines = [
        line("epoch 1\repoch 2", level=line_pb2.LEVEL_INFO),
        line(f"\x1b[31m{MARKUP}\x1b[0m", level=line_pb2.LEVEL_ERROR),
    ]
    await caller.call("IngestLines", token=token, first_sequence=0, lines=columns(lines), **owner)


@pytest.mark.timeout(360)
def test_a_person_signs_in_sees_steers_and_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    need_browser(BUILT)

    async def scenario() -> None:
        key = load_or_create_key(tmp_path / "data/experiments/signing-key.pem")
        async with (
            serving(BLUEPRINTS, tmp_path, key=key) as running,
            gateway(running.address) as http,
            browser_page() as page,
        ):
            caller = Caller(running)
            url = f"http://127.0.0.1:{http.port}"
            try:
                await visit(page, url, caller=caller, running=running)
                await steer(page)
                await compare(page, url)
                await open_many(page, url)
            finally:
                await caller.channel.close()
                end_processes(tmp_path)

    asyncio.run(asyncio.wait_for(scenario(), 300))


async def steer(page: Any) -> None:
    """Replays the search, edits notes, and forks: the config is checked while it is typed."""
    await page.keyboard.press("e")
    await page.get_by_role("tab", name="Search").click()
    await page.get_by_text("The search began").wait_for()
    await assert_accessible(page)
    slider = page.get_by_role("slider")
    await slider.fill("0")
    await page.get_by_text("The search began").wait_for(state="detached")
    assert "at=0" in page.url
    await page.get_by_role("button", name="To the end").click()
    await page.get_by_text("The search began").wait_for()

    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Notes").fill(MARKUP)
    await page.get_by_label("Labels").fill("baseline, small")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("baseline", exact=True).wait_for()
    await page.get_by_role("tab", name="Config").click()
    await page.get_by_role("heading", name="Notes").wait_for()
    await assert_accessible(page)

    await page.get_by_role("button", name="Fork").click()
    changes = page.get_by_label("Fields of the config to change")
    await changes.fill("name: forked\nhyperparameterss: {}\n")
    await page.get_by_role("button", name="line 2").wait_for()
    await changes.fill("name: forked\nhyperparameters:\n  rate: 0.5\n")
    await page.get_by_text("The config is right.").wait_for()
    await assert_accessible(page)
    await page.get_by_role("dialog").get_by_role("button", name="Fork").click()
    await page.get_by_role("heading", name="forked").wait_for()
    await page.get_by_role("row").nth(1).get_by_role("link").wait_for()


async def compare(page: Any, url: str) -> None:
    """Compares both experiments, sees them in the queue, and deletes one."""
    await page.goto(url)
    await page.get_by_role("cell", name=str(BEST)).wait_for()
    await page.get_by_label("Select all rows").check()
    await assert_accessible(page)
    await page.locator("main").get_by_role("link", name="Compare", exact=True).click()
    await page.get_by_role("tab", name="Differences").click()
    await page.get_by_role("rowheader", name="rate").wait_for()
    await assert_accessible(page)
    await page.get_by_role("tab", name="Code").click()
    await page.get_by_text("The model definitions are equal.").wait_for()

    await page.get_by_role("link", name="Queue and cluster").click()
    await page.get_by_text(re.compile("slots? in use")).first.wait_for()
    await page.get_by_role("link", name=re.compile("forked")).wait_for()
    await assert_accessible(page)

    await page.get_by_role("link", name=re.compile("forked")).click()
    await page.get_by_role("button", name="Kill").click()
    await page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    await page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox").fill("forked")
    await dialog.get_by_role("button", name="Delete").click()
    await page.get_by_role("link", name=MARKUP).wait_for()


async def open_many(page: Any, url: str) -> None:
    """More tabs than a browser opens connections to a server: each loads, and the last one is live."""
    for _ in range(8):
        last = await page.context.new_page()
        await last.goto(url, timeout=PATIENCE_MS)
        await last.get_by_role("link", name=MARKUP).wait_for(timeout=PATIENCE_MS)
    await last.get_by_role("status").get_by_text("live").wait_for(timeout=PATIENCE_MS)


async def visit(page: Any, url: str, *, caller: Caller, running: Running) -> None:
    await page.goto(url)
    await page.get_by_label("One-time code").fill(await sign_in_code(running))
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_text("No experiments yet").wait_for()

    spec = {"config_yaml": yaml.safe_dump(CONFIG)}
    created = await caller.call(
        "CreateExperiment", token=caller.admin, request_id=str(uuid.uuid4()), spec=spec
    )
    number = created.experiment.number
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("heading", name=MARKUP).wait_for()

    trial_link = page.get_by_role("row").nth(1).get_by_role("link")
    await trial_link.wait_for()
    trials = await caller.call("ListTrials", token=caller.admin, experiment={"number": number})
    await report(caller, running, trials.trials[0])
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    await page.get_by_role("button", name="Activate").wait_for()

    await trial_link.click()
    await page.get_by_role("img", name="training/loss").locator("canvas").wait_for()
    await assert_accessible(page)
    await page.get_by_role("tab", name="Logs").click()
    await page.get_by_text("epoch 2").wait_for()
    await page.get_by_role("button", name="error").click()
    await page.get_by_text("epoch 2").wait_for(state="detached")
    await page.get_by_text(MARKUP).wait_for()
    await assert_accessible(page)
    assert "level=error" in page.url
    await page.go_back()
    await page.get_by_text("epoch 2").wait_for()
    assert await page.locator("img").count() == 0  # markup in names and lines made no elements
