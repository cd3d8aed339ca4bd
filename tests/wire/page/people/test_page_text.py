"""The built page in Chromium: what people named is text wherever it is shown; and a full disk is told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.file_systems import fill_file_system, small_file_system
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.gateway import need_http
from support.services.metrics import block

from resolute.api.experiments.v1 import user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
SEARCH = {
    "description": MARKUP,
    "labels": [MARKUP],
    "hyperparameters": {
        MARKUP: {"type": "double", "minval": 0.0, "maxval": 1.0},
        "kind": {"type": "categorical", "vals": [MARKUP, f"{MARKUP} too"]},
    },
    "searcher": {"name": "random", "metric": MARKUP, "max_length": {"batches": 100}, "max_trials": 2},
}
VIEWS = (
    "/",
    "/experiments/1",
    "/experiments/1?tab=search",
    "/experiments/1?tab=hparams",
    "/experiments/1?tab=logs",
    "/experiments/1?tab=config",
    "/trials/1",
    "/trials/1?tab=logs",
    "/trials/1?tab=runs",
    "/trials/1?tab=details",
    "/compare?trials=1,2",
    "/compare?trials=1,2&tab=differences",
    "/now",
    "/models?model=1",
    "/cluster",
)


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_markup_is_text_in_every_view(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_for_markup)


async def look_for_markup(visit: Visit) -> None:
    page, caller = visit.page, visit.caller
    trials = await visit.create(trials=2, **SEARCH)
    for trial in trials:
        owner, token = visit.owner(trial)
        values: dict[str, Any] = {MARKUP: [1 / step for step in range(1, 41)]}
        points = [block("validation", list(range(40)), list(range(1, 41)), **values)]
        selection = {"searcher_metric": MARKUP, "smaller_is_better": True}
        await caller.call(
            "IngestReports",
            token=token,
            first_sequence=0,
            count=40,
            blocks=points,
            source="s",
            **selection,
            **owner,
        )
        await visit.say(trial, MARKUP, f"\x1b[1m{MARKUP}\x1b[0m\r{MARKUP}")
    await caller.call(
        "UpdateExperiment",
        token=caller.admin,
        key={"experiment_id": trials[0].experiment_id},
        experiment={"notes": MARKUP},
        update_mask={"paths": ["notes"]},
    )
    await caller.call("CreateModel", token=caller.admin, model={"name": MARKUP, "description": MARKUP})
    await visit.sign_in()
    for path in VIEWS:
        await page.goto(visit.url + path)
        await page.locator("main").get_by_text(MARKUP).first.wait_for(state="attached")
        for chart in await page.locator(".u-over").all():
            await chart.hover()  # legends and tooltips have names too
        assert await page.locator("img").count() == 0, path


TURNED = "\u202egnp.exe"
WIDE = "W" * 180
HOSTILE = f"{MARKUP}{TURNED}{WIDE}"
FIELDS = (
    ("/", "experiment"),
    ("/now", "experiment"),
    ("/experiments/{experiment}", "label"),
    ("/experiments/{experiment}?tab=checkpoints", "experiment"),
    ("/trials/{trial}", "trial label"),
    ("/models", "model"),
    ("/models?model=1", "version"),
    ("/boards", "board"),
    ("/boards?project=1&board=1", "report"),
    ("/create", "template"),
    ("/tokens", "token"),
    ("/cluster", "experiment"),
    ("/cluster?tab=workspaces", "workspace"),
    ("/cluster?tab=storage", "experiment"),
    ("/compare?trials={trial}", "experiment"),
)
"""Views, and a word that stands before what is hostile in one of their fields."""


def test_text_that_people_write_runs_nothing_turns_nothing_and_widens_nothing(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, look_for_hostile_text)


async def look_for_hostile_text(visit: Visit) -> None:
    page = visit.page
    await visit.sign_in(role=user_pb2.USER_ROLE_ADMIN)
    trial = await write_everywhere(visit)
    for path, word in FIELDS:
        at = path.format(experiment=trial.experiment_number, trial=trial.number)
        await page.goto(visit.url + at)
        shown = page.locator("main").get_by_text(f"{word} {MARKUP}")
        if word != "template":  # which is a choice of a list
            await shown.first.wait_for(state="attached")
        for width in (1440, 390):
            await page.set_viewport_size({"width": width, "height": 844})
            root = "document.scrollingElement"
            assert await page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0, (at, width)
        assert await page.locator("main img[src=x]").count() == 0, at
        turning = await page.evaluate(TURNS)
        assert not turning, (at, turning)


TURNS = """() => [...document.querySelectorAll("main *")]
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3
    && /[\\u202a-\\u202e]/.test(node.data)))
  .filter((one) => getComputedStyle(one).unicodeBidi === "normal")
  .filter((one) => getComputedStyle(one).display === "inline")
  .map((one) => one.outerHTML.slice(0, 200))"""
"""Elements whose text may turn that of their neighbours around."""


async def write_everywhere(visit: Visit) -> Any:
    """Writes the same into every field that people name things by."""

    async def call(method: str, **fields: Any) -> Any:
        return await visit.caller.call(method, token=visit.caller.admin, **fields)

    def named(word: str, most: int = 250) -> str:
        return f"{word} {HOSTILE}"[:most]

    [trial] = await visit.create(
        name=named("experiment"), labels=[named("label")], description=named("description")
    )
    await visit.report(trial)
    file = await visit.save(trial, b"weights")
    written = {"notes": f"# {named('notes')}", "labels": [named("trial label")]}
    mask = {"paths": ["notes", "labels"]}
    await call("UpdateTrial", key={"trial_id": trial.trial_id}, trial=written, update_mask=mask)
    written = {"notes": f"[{named('notes')}](javascript:alert(1))"}
    key = {"experiment_id": trial.experiment_id}
    await call("UpdateExperiment", key=key, experiment=written, update_mask={"paths": ["notes"]})
    await call("CreateModel", model={"name": f"model {MARKUP}{WIDE[:100]}", "labels": [named("label", 150)]})
    version = {"name": named("version", 150), "comment": named("comment"), "labels": [named("alias", 150)]}
    await call(
        "CreateVersion", key={"number": 1}, checkpoint_id=file.parent.name, version=version, request_id=""
    )
    await call("CreateWorkspace", name=f"workspace {MARKUP}{WIDE[:40]}")
    board = f"board {MARKUP}{WIDE}"[:80]
    report = f"report {HOSTILE}\n\n<script>alert(1)</script>\n\n![{MARKUP}](javascript:alert(1))"
    await call("SetBoard", project_id=1, name=board, report=report)
    await call("CreateToken", description=named("token"))
    await call("SetTemplate", name=f"template {MARKUP}", config_yaml="debug: true")
    return trial


def test_a_full_disk_is_told_of_in_every_view_while_it_is_full(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk", "64m") as disk:
        visit_page(BUILT, disk, fill_and_free)


async def fill_and_free(visit: Visit) -> None:
    page = visit.page
    await visit.create()
    await visit.sign_in()
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("button", name="Pause").wait_for()
    filler = fill_file_system(visit.folder)
    told = page.get_by_role("banner").get_by_role("link", name="is full")
    await told.wait_for()
    filler.unlink()
    await told.wait_for(state="detached")
