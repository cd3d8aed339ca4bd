"""The page and a command follow on when their gateway was killed: no line is lost or shown twice.

The number of kills is small here; `make gateway-kills` kills it 20 times.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.pages.visit import Visit, visit_page
from support.services.gateway import need_http
from support.services.processes.gateway import GatewayProcess

need_http()

from resolute_gateway.requirements import BUILT  # noqa: E402 - skipped where HTTP cannot be served

KILLS = int(os.environ.get("RESOLUTE_GATEWAY_KILLS", "1"))


@pytest.mark.timeout(900)
def test_a_log_goes_on_after_the_gateway_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    visit_page(BUILT, tmp_path, follow_through_kills, seconds=300 + 30 * KILLS)


async def follow_through_kills(visit: Visit) -> None:
    gateway = GatewayProcess(visit.running.address)
    try:
        await asyncio.to_thread(gateway.start)
        visit = dataclasses.replace(visit, url=gateway.url)
        await _follow(visit, gateway)
    finally:
        await asyncio.to_thread(gateway.kill)


async def _follow(visit: Visit, gateway: GatewayProcess) -> None:
    page = visit.page
    [trial] = await visit.create()
    await visit.sign_in()
    await page.goto(f"{visit.url}/trials/{trial.number}?tab=logs")
    dot = page.get_by_role("banner").get_by_role("status")
    said: list[str] = []
    async with command(visit, "trial", "logs", "-f", str(trial.number)) as followed:
        for kill in range(KILLS):
            before, away = f"before kill {kill}", f"while away {kill}"
            await visit.say(trial, before, first=len(said))
            await page.get_by_text(before, exact=True).wait_for()
            await dot.get_by_text("live", exact=True).wait_for()
            assert await next_line(followed) == before, f"after {said}"

            await asyncio.to_thread(gateway.kill)
            await dot.get_by_text("reconnecting").wait_for()
            await visit.say(trial, away, first=len(said) + 1)
            await asyncio.to_thread(gateway.start)
            await page.get_by_text(away, exact=True).wait_for()
            await dot.get_by_text("live", exact=True).wait_for()
            for text in (before, away):
                assert await page.get_by_text(text, exact=True).count() == 1
            assert await next_line(followed) == away, f"after {said}"
            said += [before, away]
    assert await page.get_by_text("could not be read").count() == 0


@asynccontextmanager
async def command(visit: Visit, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
    """Yields what a command prints while it runs beside the page."""
    signed_in = {"RESOLUTE_MASTER": visit.url, "RESOLUTE_TOKEN": visit.running.user_token()}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("resolute"),
        *arguments,
        env={**os.environ, **signed_in},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.terminate()
        await process.wait()


async def next_line(printed: asyncio.StreamReader) -> str:
    """The message of the next line of a log that a command prints."""
    line = (await printed.readline()).decode().strip()
    return line.rpartition("] ")[2]
