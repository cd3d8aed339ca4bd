"""The built page in Chromium: which hyperparameters matter, by the server's measure or by the page's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http
from support.services.metrics import block

from resolute.contracts.values import to_mapping
from resolute_searcher.servicers import importances

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
TRIALS = 12
AXIS = {"type": "double", "minval": -1.0, "maxval": 1.0}
SEARCH = {
    "hyperparameters": {"matters": AXIS, "idle": AXIS},
    "searcher": {
        "name": "random",
        "metric": "loss",
        "max_length": {"batches": 100},
        "max_trials": TRIALS,
        "max_concurrent_trials": TRIALS,
    },
}


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_the_server_tells_which_hyperparameters_matter(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, see_estimate)


def test_without_its_libraries_the_page_says_which_measure_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importances, "_NEEDED", ("a_library_that_is_not_here",))
    visit_page(BUILT, tmp_path, see_own_measure)


async def see_estimate(visit: Visit) -> None:
    await finish_trials(visit)
    page = visit.page
    await page.goto(f"{visit.url}/experiments/1?tab=hparams")
    await page.get_by_text(f"(fANOVA), from the results of {TRIALS} of {TRIALS} trials").wait_for()
    assert await page.locator("dt").first.inner_text() == "matters"
    await assert_accessible(page)


async def see_own_measure(visit: Visit) -> None:
    await finish_trials(visit)
    page = visit.page
    await page.goto(f"{visit.url}/experiments/1?tab=hparams")
    await page.get_by_text(f"of the first {TRIALS} trials").wait_for()
    await page.get_by_text("a simpler measure than fANOVA").wait_for()
    await page.get_by_text("install resolute-train[search] there").wait_for()
    assert await page.locator("dt").first.inner_text() == "matters"
    await assert_accessible(page)


async def finish_trials(visit: Visit) -> None:
    """Lets every trial train as far as it may, to a metric that one hyperparameter decides."""
    for trial in await visit.create(trials=TRIALS, **SEARCH):
        loss = 2.0 + to_mapping(trial.hparams)["matters"]
        owner, token = visit.owner(trial)
        await visit.caller.call(
            "CompleteOperation", token=token, trial_id=trial.trial_id, run=1, length=100, metric=loss
        )
        await visit.caller.call(
            "IngestReports",
            token=token,
            source="s",
            first_sequence=0,
            count=1,
            blocks=[block("validation", [0], [100], loss=[loss])],
            searcher_metric="loss",
            smaller_is_better=True,
            **owner,
        )
    await visit.sign_in()
