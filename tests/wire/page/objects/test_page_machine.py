"""What the machines of a run do, on the page of its trial and on that of the cluster."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible, assert_accessible_everywhere
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute.api.experiments.v1.machine_usage_pb2 import MachineUsage  # noqa: E402 - skipped where HTTP cannot be served
from resolute_gateway.requirements import BUILT  # noqa: E402
from resolute_serving.context import TrialRun  # noqa: E402

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
GPU = "GPU-11111111-2222-3333-4444-555555555555"
PICTURES = os.environ.get("RESOLUTE_TEST_PICTURES", "")
"""Folder that gets pictures of the views, for people; empty for none."""


def test_machines_and_heat(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_at_machines)


async def look_at_machines(visit: Visit) -> None:
    page = visit.page
    (trial,) = await visit.create()
    await visit.report(trial)
    await visit.sign_in()
    await tell(visit, trial)
    await page.goto(f"{visit.url}/trials/{trial.number}?tab=machine")
    for title in ("GPU use, %", "GPU temperature, °C", "PCIe, bytes/s", "Memory, % of its limit"):
        await page.get_by_role("img", name=title, exact=True).wait_for()
    await page.get_by_text("GPU-11111111 · sent").first.wait_for()
    await assert_accessible(page)
    await take_picture(visit, "machine")
    # They are none of the metrics that the script reports.
    await page.get_by_role("tab", name="Metrics").click()
    await page.get_by_role("img", name="training/loss", exact=True).wait_for()
    assert not await page.get_by_role("img", name="GPU use, %", exact=True).count()
    await page.goto(f"{visit.url}/cluster")
    row = page.get_by_role("row").filter(has_text="GPU-11111111")
    await row.get_by_text("25 %").wait_for()
    await row.get_by_text("88 °C").wait_for()
    await assert_accessible(page)
    await take_picture(visit, "heat")
    await row.get_by_role("link", name=f"trial {trial.number}").click()
    await page.get_by_role("img", name="GPU use, %", exact=True).wait_for()


async def tell(visit: Visit, trial: Any) -> None:
    """Tells what the machine did, as a supervisor would."""
    series = {
        "cpu": [30.0, 35.0, 90.0],
        "memory": [50.0, 55.0, 60.0],
        "net_sent": [1e6, 2e6, 1e6],
        f"{GPU}.gpu_util": [20.0, float("nan"), 25.0],
        f"{GPU}.gpu_used_memory": [60.0, 61.0, 62.0],
        f"{GPU}.gpu_temperature": [70.0, 80.0, 88.0],
        f"{GPU}.gpu_pcie_sent": [1e6, 2e6, 3e6],
        f"{GPU}.gpu_pcie_received": [3e6, 2e6, 1e6],
    }
    usage = MachineUsage(
        node="desk",
        start_time=1_800_000_000.0,
        seconds=[60.0, 60.0, 5.0],
        series=[MachineUsage.Series(name=name, values=values) for name, values in series.items()],
    )
    allocation = f"{trial.trial_id}.1"
    token = visit.running.trial_token(TrialRun(trial.trial_id, 1, trial.experiment_id, allocation, "w"))
    await visit.caller.call("ReportMachineUsage", token=token, allocation_id=allocation, usage=usage)
    answer = await visit.caller.call(
        "GetMachineUsage", token=visit.caller.admin, trial={"number": trial.number}, newest=True
    )
    (newest,) = (one.usage for one in answer.containers)
    assert (newest.start_time, list(newest.seconds)) == (1_800_000_120.0, [5.0])
    assert {one.name: list(one.values) for one in newest.series}["cpu"] == [90.0]


SENTENCE = "rank 0 waits in all_reduce at train.py:88; rank 1 is in next at data.py:40, 14 minutes"


def test_a_trial_that_stands_still_needs_somebody_now(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, stand_still)


async def stand_still(visit: Visit) -> None:
    page = visit.page
    (trial,) = await visit.create(name="stuck")
    await visit.sign_in()
    await page.goto(f"{visit.url}/now")
    row = page.get_by_role("listitem").filter(has_text="stands still")
    saying = asyncio.create_task(say_that_nothing_moves(visit, trial))
    await row.get_by_text(SENTENCE).wait_for()
    await row.get_by_text(re.compile(r"noticed (just now|\d+ s ago)")).wait_for()
    await row.get_by_role("link", name="stuck").wait_for()
    await assert_accessible_everywhere(page)
    await row.get_by_role("link", name=f"trial {trial.number}").click()
    await page.wait_for_url(f"**/trials/{trial.number}?tab=logs")
    saying.cancel()


async def say_that_nothing_moves(visit: Visit, trial: Any) -> None:
    """Says so until it is cancelled: the supervisor of the run says otherwise from time to time."""
    allocation = f"{trial.trial_id}.1"
    token = visit.running.trial_token(TrialRun(trial.trial_id, 1, trial.experiment_id, allocation, "w"))
    while True:
        await visit.caller.call("RenewLease", token=token, allocation_id=allocation, hang=SENTENCE)
        await asyncio.sleep(0.2)


async def take_picture(visit: Visit, name: str) -> None:
    if PICTURES:
        await visit.page.wait_for_timeout(300)
        await visit.page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)
