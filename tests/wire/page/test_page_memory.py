"""The built page in Chromium: nothing of a view stays once it is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.services.gateway import need_http
from support.services.page_visit import Visit, visit_page

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
SEARCH = {
    "hyperparameters": {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}},
    "searcher": {"name": "random", "metric": "loss", "max_length": {"batches": 100}, "max_trials": 3},
}
CHART = "figure canvas"
VIEWS = (
    ("experiments/1", CHART),
    ("experiments/1?tab=search", "svg .dot"),
    ("experiments/1?tab=hparams", "svg[role=img] path"),
    ("experiments/1?tab=checkpoints", "tbody tr"),
    ("experiments/1?tab=config", "pre"),
    ("trials/1", CHART),
    ("trials/1?tab=logs", ".line"),
    ("trials/1?tab=runs", "tbody tr"),
    ("compare?trials=1,2", CHART),
    ("cluster", "tbody tr"),
    ("", "tbody tr"),
)
"""Where each view is, and what is seen once it is drawn."""
COUNTED = ("Nodes", "JSEventListeners")
ROUNDS = 8
FOLLOW = """(href) => {
  const link = document.createElement('a');
  link.href = href;
  document.body.append(link);
  link.click();
  link.remove();
}"""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_views_that_are_left_leave_nothing(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, go_round)


async def go_round(visit: Visit) -> None:
    for trial in await visit.create(trials=3, **SEARCH):
        await visit.report(trial)
        await visit.save(trial, b"weights")
    await visit.sign_in()
    session = await visit.page.context.new_cdp_session(visit.page)
    await session.send("Performance.enable")
    counts = []
    for _ in range(ROUNDS):
        for path, seen in VIEWS:
            await visit.page.evaluate(FOLLOW, f"{visit.url}/{path}")
            await visit.page.locator(seen).first.wait_for(state="attached")
        counts.append(await held(session))
    # What is made once is there after the second round. Browsers keep a view that was left longer now
    # and then; a view that leaks leaves more in each round.
    for name in counts[0]:
        early, late = ([one[name] for one in part] for part in (counts[1:4], counts[-3:]))
        assert min(late) <= max(early), (name, counts)


async def held(session: Any) -> dict[str, int]:
    """What the page holds once garbage is collected: nodes, listeners, and canvases wherever they are."""
    for _ in range(3):
        await session.send("HeapProfiler.collectGarbage")
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    found = {one["name"]: int(one["value"]) for one in metrics if one["name"] in COUNTED}
    prototype = await session.send("Runtime.evaluate", {"expression": "HTMLCanvasElement.prototype"})
    objects = await session.send(
        "Runtime.queryObjects", {"prototypeObjectId": prototype["result"]["objectId"], "objectGroup": "held"}
    )
    length = await session.send(
        "Runtime.callFunctionOn",
        {
            "objectId": objects["objects"]["objectId"],
            "functionDeclaration": "function () { return this.length; }",
            "returnByValue": True,
        },
    )
    await session.send("Runtime.releaseObjectGroup", {"objectGroup": "held"})
    return found | {"canvases": int(length["result"]["value"])}
