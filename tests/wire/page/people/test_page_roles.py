"""The built page in Chromium: admins give, change and remove roles in single workspaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import Visit, visit_page
from support.services.access import calls
from support.services.gateway import need_http

from resolute.api.experiments.v1 import roles_service_pb2, roles_service_pb2_grpc, user_pb2

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]


def test_an_admin_gives_and_takes_roles_of_a_workspace(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, give_and_take)


def test_others_see_the_roles_and_change_none(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, only_look)


async def give_and_take(visit: Visit) -> None:
    page = visit.page
    await visit.sign_in(role=user_pb2.USER_ROLE_ADMIN)
    async with calls(visit.running, visit.running.user_token()) as admin:
        await admin.user("grace", role=user_pb2.USER_ROLE_MEMBER)
        await admin.workspace("vision")
    await page.goto(f"{visit.url}/cluster?tab=workspaces")
    await page.get_by_role("button", name="Roles in vision").click()
    dialog = page.get_by_role("dialog")
    before = await roles(visit)  # whoever makes a workspace is its admin
    await dialog.get_by_role("cell", name=next(iter(before)), exact=True).wait_for()
    await dialog.get_by_label("User").fill("nobody-of-that-name")
    await dialog.get_by_role("button", name="Give the role").click()
    await dialog.get_by_role("alert").get_by_text("There is no user nobody-of-that-name").wait_for()
    await dialog.get_by_label("User").fill("grace")
    await dialog.get_by_label("Role to give").select_option("editor")
    await dialog.get_by_role("button", name="Give the role").click()
    await dialog.get_by_role("cell", name="grace", exact=True).wait_for()
    assert await roles(visit) == before | {"grace": user_pb2.USER_ROLE_EDITOR}
    await assert_accessible(page)

    await dialog.get_by_label("Role of grace", exact=True).select_option("viewer")
    await page.wait_for_function("() => !document.querySelector('dialog td select').disabled")
    assert await roles(visit) == before | {"grace": user_pb2.USER_ROLE_VIEWER}
    await dialog.get_by_role("button", name="Remove the role of grace").click()
    await dialog.get_by_role("cell", name="grace", exact=True).wait_for(state="detached")
    assert await roles(visit) == before


async def only_look(visit: Visit) -> None:
    page = visit.page
    await visit.sign_in()
    await page.goto(f"{visit.url}/cluster?tab=workspaces")
    await page.get_by_role("button", name="Roles in Uncategorized").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("Nobody has a role of this workspace alone.").wait_for()
    assert await dialog.get_by_role("button", name="Give the role").count() == 0
    await assert_accessible(page)


async def roles(visit: Visit) -> dict[str, int]:
    """The roles in single workspaces, by the names of their users."""
    async with visit.running.channel(visit.running.user_token()) as channel:
        stub: Any = roles_service_pb2_grpc.RolesServiceStub(channel)
        listed = await stub.ListRoles(roles_service_pb2.ListRolesRequest())
        return {one.user_name: one.role for one in listed.roles}
