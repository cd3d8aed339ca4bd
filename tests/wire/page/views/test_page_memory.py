"""The built page in Chromium: nothing of a view stays once it is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http

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
ROUNDS = 6
FOLLOW = """(href) => {
  const link = document.createElement('a');
  link.href = href;
  document.body.append(link);
  link.click();
  link.remove();
}"""

NOTE = """([path, selector]) => new Promise((resolve) => {
  const look = () => {
    const seen = document.querySelector(selector);
    if (!seen || seen.noted) return setTimeout(look, 20);  // the view before may still be there
    seen.noted = true;  // a property keeps what JavaScript knows of the element as long as the element
    ((window.noted ??= {})[path] ??= []).push(new WeakRef(seen));
    resolve();
  };
  look();
})"""
"""Waits until a view is drawn, and notes an element of it without keeping it."""
KEPT = """() => Object.fromEntries(
  Object.entries(window.noted).map(([path, seen]) => [path, seen.filter((one) => one.deref()).length])
)"""


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
    listeners = []
    for _ in range(ROUNDS):
        for path, seen in VIEWS:
            await visit.page.evaluate(FOLLOW, f"{visit.url}/{path}")
            await visit.page.evaluate(NOTE, [path, seen])
        listeners.append([await listener_count(session, of) for of in ("window", "document")])
    for _ in range(3):
        await session.send("HeapProfiler.collectGarbage")
    kept = await visit.page.evaluate(KEPT)
    # Browsers keep a view or two that were left last. One that leaks is kept from each round.
    assert {path: count for path, count in kept.items() if count > ROUNDS // 2} == {}
    assert len(kept) == len(VIEWS)
    assert listeners[1:] == listeners[1:2] * (ROUNDS - 1), "views leave listeners behind"


async def listener_count(session: Any, target: str) -> int:
    """How many listeners an object has that outlives every view."""
    found = await session.send("Runtime.evaluate", {"expression": target, "objectGroup": "targets"})
    described = await session.send("DOMDebugger.getEventListeners", {"objectId": found["result"]["objectId"]})
    await session.send("Runtime.releaseObjectGroup", {"objectGroup": "targets"})
    return len(described["listeners"])
