"""Checkpoints as downloads of a browser: whole, with their folders, or not at all."""

from __future__ import annotations

import asyncio
import tarfile
from pathlib import Path

import pytest
from support.pages.browser import assert_accessible
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

pytestmark = [pytest.mark.timeout(360), pytest.mark.sampled(1, group="the page in a browser")]
WEIGHTS = bytes(range(256)) * 12_000
FOLDED = f"weights/{'layer' * 30}/größe.pt"


def test_the_best_checkpoint_is_one_click(tmp_path: Path) -> None:
    visit_page(BUILT, tmp_path, download_the_best)


async def download_the_best(visit: Visit) -> None:
    page = visit.page
    (trial,) = await visit.create()
    await visit.report(trial)
    stored = await visit.save(trial, WEIGHTS, path=FOLDED)
    checkpoint = stored.relative_to(visit.folder / "checkpoints").parts[0]
    refused = await page.request.get(f"{visit.url}/checkpoints/{checkpoint}.tar")
    assert refused.status == 401
    await visit.sign_in()
    await page.goto(f"{visit.url}/experiments/1?tab=checkpoints")
    await page.get_by_role("cell", name="best 0.025").wait_for()
    await assert_accessible(page)
    async with page.expect_download() as caught:
        await page.get_by_role("link", name="Download the best").click()
    download = await caught.value
    assert download.suggested_filename == f"checkpoint-{checkpoint}.tar"
    with tarfile.open(await download.path()) as archive:
        (member,) = archive.getmembers()
        assert member.name == FOLDED
        content = archive.extractfile(member)
        assert content is not None
        assert content.read() == WEIGHTS
    await asyncio.to_thread(stored.chmod, 0o644)
    await asyncio.to_thread(stored.write_bytes, WEIGHTS[:-1] + b"x")
    async with page.expect_download() as caught:
        await page.get_by_role("link", name=f"Download checkpoint {checkpoint}").click()
    assert await (await caught.value).failure()
