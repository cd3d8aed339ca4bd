"""The built page in Chromium: replaying a search, forking, comparing, deleting, downloading."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from support.pages.browser import assert_accessible
from support.pages.editor import write
from support.pages.visit import BEST, MARKUP, Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import access_service_pb2, user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]


@pytest.fixture(autouse=True)
def one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")


def test_a_search_is_replayed_and_an_experiment_edited(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, replay_and_edit)


async def replay_and_edit(visit: Visit) -> None:
    page = visit.page
    await visit.create()
    await visit.sign_in()
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("tab", name="Search").click()
    await page.get_by_text("The search began").wait_for()
    await page.get_by_role("cell", name="trial 1: created").wait_for()
    await assert_accessible(page)
    await page.get_by_role("slider").fill("0")
    await page.get_by_text("The search began").wait_for(state="detached")
    await page.wait_for_url("**at=0**")
    await page.get_by_role("button", name="To the end").click()
    await page.get_by_text("The search began").wait_for()

    await page.get_by_role("button", name="Edit").click()
    await page.get_by_label("Notes").fill(MARKUP)
    await page.get_by_label("Labels").fill("baseline, small")
    await page.get_by_role("button", name="Save").click()
    await page.get_by_text("baseline", exact=True).wait_for()
    await page.get_by_role("tab", name="Config").click()
    await page.get_by_role("heading", name="Config").wait_for()
    await assert_accessible(page)
    await page.get_by_role("tab", name="Overview").click()
    await page.get_by_role("heading", name="Notes").wait_for()
    await assert_accessible(page)


def test_an_experiment_is_forked_compared_and_deleted(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, fork_compare_and_delete)


async def fork_compare_and_delete(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.report(trial)
    await visit.sign_in()
    await page.get_by_role("link", name=MARKUP).click()
    await page.get_by_role("button", name="Fork").click()
    config = page.get_by_role("textbox", name="Config")
    entrypoint = "entrypoint: sleep 600\nsearcher: {name: single, metric: loss, max_length: {batches: 100}}\n"
    await write(config, f"name: forked\n{entrypoint}hyperparameterss: {{}}\nmax_restarts: -1\n")
    await page.get_by_role("button", name="line 4").wait_for()
    await page.get_by_role("button", name="line 5").click()
    await page.locator(".cm-lint-marker-error").nth(1).wait_for()
    await assert_accessible(page)
    await write(config, f"name: forked\n{entrypoint}hyperparameters:\n  rate: 0.5\n")
    await page.get_by_text("The config is right.").wait_for()
    await page.get_by_text("+ name: forked").wait_for()
    await page.get_by_text("- name: ").wait_for()
    await assert_accessible(page)
    await page.get_by_role("dialog").get_by_role("button", name="Fork").click()
    await page.get_by_role("heading", name="forked").wait_for()
    await page.get_by_role("row").nth(1).get_by_role("link").wait_for()

    await page.goto(visit.url)
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
    await page.get_by_label("Select all rows").wait_for()
    await page.get_by_role("link", name=MARKUP).wait_for()
    # A row that is shown stays as "deleted"; a list that is loaded after the deletion has none.
    while await page.get_by_role("link", name=re.compile("forked")).count():
        await page.reload()
        await page.get_by_role("link", name=MARKUP).wait_for()


def test_a_checkpoint_is_downloaded_and_verified(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, download_and_verify)


async def download_and_verify(visit: Visit) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.save(trial, b"weights")
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{trial.number}?tab=checkpoints")
    await page.get_by_role("button", name="1 file").click()
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Download").click()
    assert Path(await (await downloading.value).path()).read_bytes() == b"weights"

    await page.get_by_role("button", name="Verify checkpoint").click()
    await page.get_by_text("1 file sound").wait_for()
    await page.get_by_role("button", name="Close").click()
    [stored] = visit.folder.glob("checkpoints/*/model.pt")
    stored.write_bytes(b"weightz")
    await page.get_by_role("button", name="Verify checkpoint").click()
    await page.get_by_text("1 of 1 file damaged").wait_for()
    await page.get_by_text("has another content than was committed").wait_for()
    await assert_accessible(page)


def test_an_admin_changes_the_role_of_a_user(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, change_role)


async def change_role(visit: Visit) -> None:
    page = visit.page
    await visit.sign_in(role=user_pb2.USER_ROLE_ADMIN)
    async with calls(visit.running, visit.running.user_token()) as admin:
        await admin.user("grace")

        async def grace() -> user_pb2.User:
            listed = await admin.access.ListUsers(access_service_pb2.ListUsersRequest(names=["grace"]))
            found: user_pb2.User = listed.users[0]
            return found

        before = await grace()
        await page.goto(f"{visit.url}/cluster?tab=users")
        row = page.get_by_role("row", name="grace")
        dialog = page.get_by_role("dialog")
        await page.get_by_role("button", name="Change user grace").click()
        assert await dialog.get_by_role("button", name="Change").is_disabled()
        await dialog.get_by_label("Role in the cluster").select_option("admin")
        await assert_accessible(page)
        await dialog.get_by_role("button", name="Change").click()
        await row.get_by_role("cell", name="admin").wait_for()
        assert before.role != user_pb2.USER_ROLE_ADMIN
        assert (await grace()).role == user_pb2.USER_ROLE_ADMIN

        await page.get_by_role("button", name="Change user grace").click()
        await admin.access.UpdateUser(
            access_service_pb2.UpdateUserRequest(
                user=user_pb2.User(user_id=before.user_id, active=False),
                update_mask=FieldMask(paths=["active"]),
            )
        )
        await dialog.get_by_label("Role in the cluster").select_option("viewer")
        await dialog.get_by_role("button", name="Change").click()
        await dialog.get_by_role("alert").get_by_text("Somebody changed this user meanwhile").wait_for()
        assert (await grace()).role == user_pb2.USER_ROLE_ADMIN
