"""The built page in Chromium: experiments are created from uploaded code, a template, or another."""

from __future__ import annotations

import io
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.pages.browser import assert_accessible
from support.pages.editor import write
from support.pages.visit import MARKUP, Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import (
    access_service_pb2,
    experiment_pb2,
    experiments_service_pb2,
    experiments_service_pb2_grpc,
    roles_service_pb2,
    roles_service_pb2_grpc,
    user_pb2,
)
from resolute.contracts.values import from_value

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
CONFIG = """
name: uploaded
# the author's own words
entrypoint: sleep 600
searcher: {name: single, metric: loss, max_length: {batches: 100}}
"""


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_an_experiment_is_created_from_a_folder(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path / "services", lambda visit: create_from_a_folder(visit, tmp_path))


async def create_from_a_folder(visit: Visit, folder: Path) -> None:
    page = visit.page
    code = folder / "code"
    for name, text in {
        "config.yaml": CONFIG,
        "train.py": "print('\u00e9')\n",
        "nets/small.py": "",
        "nets/__pycache__/small.pyc": "compiled",
    }.items():
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text)
    await visit.sign_in()
    await page.get_by_text("No experiments yet").wait_for()
    await page.get_by_role("link", name="New experiment").click()
    await page.get_by_text("The config is right.").wait_for()
    await assert_accessible(page)
    editor = page.get_by_role("textbox", name="Config", exact=True)
    await page.get_by_label("Choose a folder").set_input_files(code)
    await page.get_by_text(re.compile("3 files, .* packed; 1 left out")).wait_for()
    await editor.get_by_text("the author's own words").wait_for()
    await page.get_by_text("The config is right.").wait_for()
    await page.get_by_label("Paused").check()
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.emulate_media(color_scheme="dark")
    await assert_accessible(page)
    assert await page.evaluate("document.scrollingElement.scrollWidth") == 390
    await page.get_by_role("button", name="Create").click()
    await page.get_by_role("heading", name="uploaded").wait_for()
    await page.get_by_text("paused").first.wait_for()
    assert await submitted_files(visit, 1) == {
        "config.yaml": CONFIG,
        "nets/small.py": "",
        "train.py": "print('\u00e9')\n",
    }


async def submitted_files(visit: Visit, number: int) -> dict[str, str]:
    """The code of an experiment."""
    async with visit.running.channel(visit.running.user_token()) as channel:
        stub: Any = experiments_service_pb2_grpc.ExperimentsServiceStub(channel)
        request = experiments_service_pb2.GetModelDefinitionRequest(
            experiment=experiment_pb2.ExperimentKey(number=number)
        )
        content = b"".join([part.chunk async for part in stub.GetModelDefinition(request)])
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
        return {one.name: archive.extractfile(one).read().decode() for one in members}  # type: ignore[union-attr]


def test_faults_are_marked_and_what_is_too_large_is_not_sent(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path / "services", lambda visit: mark_faults(visit, tmp_path))


async def mark_faults(visit: Visit, folder: Path) -> None:
    page = visit.page
    large, long = folder / "large.tar.gz", folder / ("n" * 101)
    large.write_bytes(bytes((2 << 20) + 1))
    long.write_text("")
    await visit.sign_in()
    await page.goto(f"{visit.url}/create")
    editor = page.get_by_role("textbox", name="Config", exact=True)
    create = page.get_by_role("button", name="Create")
    await write(editor, f"name: x\nentrypoint: sleep 1\nmax_restarts: -1\nlabels: ['{MARKUP}']\n")
    await page.get_by_role("button", name="line 3").wait_for()
    assert await create.is_disabled()
    await assert_accessible(page)
    files = page.get_by_label("Choose files")
    await files.set_input_files(large)
    await page.get_by_role("alert").get_by_text(re.compile("a browser sends at most 2 MiB")).wait_for()
    await files.set_input_files(long)
    await page.get_by_role("alert").get_by_text("is longer than 100 bytes").wait_for()
    await files.set_input_files([])
    await write(editor, CONFIG)
    await page.get_by_text("The config is right.").wait_for()
    assert await create.is_enabled()


def test_an_experiment_is_created_from_a_template_and_from_another(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, create_from_others)


async def make_editor_of(visit: Visit, workspace: str) -> None:
    """Makes a workspace with a project, where the person who is signed in is an editor."""
    async with calls(visit.running, visit.running.user_token()) as admin:
        made = await admin.workspace(workspace)
        await admin.project(made.workspace_id, "first")
        listed = await admin.access.ListUsers(access_service_pb2.ListUsersRequest(names=["ada"]))
    async with visit.running.channel(visit.running.user_token()) as channel:
        stub: Any = roles_service_pb2_grpc.RolesServiceStub(channel)
        request = roles_service_pb2.AssignRoleRequest(
            user_id=listed.users[0].user_id,
            workspace_id=made.workspace_id,
            role=user_pb2.USER_ROLE_EDITOR,
        )
        await stub.AssignRole(request)


async def create_from_others(visit: Visit) -> None:
    page = visit.page
    await visit.create(name="first")
    admin = visit.caller.admin
    template = yaml.safe_dump({"resources": {"priority": 7}, "max_restarts": 3})
    await visit.caller.call("SetTemplate", token=admin, name="urgent", config_yaml=template)
    await visit.sign_in(role=user_pb2.USER_ROLE_MEMBER)
    await make_editor_of(visit, "vision")
    await page.goto(f"{visit.url}/create")
    await page.get_by_label("Template").select_option("urgent")
    await write(page.get_by_role("textbox", name="Config", exact=True), CONFIG)
    await page.get_by_role("button", name="Create").click()
    await page.get_by_role("heading", name="uploaded").wait_for()
    made = (await visit.caller.call("GetExperiment", token=admin, experiment={"number": 2})).experiment
    config = from_value(made.config)
    assert (config["max_restarts"], config["resources"]["priority"]) == (3, 7)
    assert made.workspace_name == "vision", "the only one where the person may create any"

    await page.goto(f"{visit.url}/create")
    field = page.get_by_label("From the config and the code of another experiment")
    await field.fill("99")
    await page.get_by_role("button", name="Fork").click()
    await page.get_by_role("alert").get_by_text("99").wait_for()
    await field.fill("2")
    await page.get_by_role("button", name="Fork").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("The config is right.").wait_for()
    await dialog.get_by_role("button", name="Fork").click()
    await page.wait_for_url("**/experiments/3")
