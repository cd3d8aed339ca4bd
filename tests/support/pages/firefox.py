"""Debian's Firefox ESR for playwright, which speaks WebDriver BiDi with it.

Playwright sets what pages learn of a person's preferences by a command that this Firefox lacks. Between
the two, the program here answers that command itself, and hands everything else on.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web

PROGRAM = "firefox-esr"
_MISSING_COMMAND = "emulation.setMediaFeaturesOverride"
_LISTENS = re.compile(r"(WebDriver BiDi listening on ws://127\.0\.0\.1:)(\d+)")


@asynccontextmanager
async def firefox(playwright: Any, folder: Path) -> AsyncIterator[Any]:
    """A Firefox that playwright drives.

    Args:
        playwright: Drives it.
        folder: Gets the program that playwright starts.
    """
    program = folder / "firefox"
    tests = Path(__file__).parents[2]
    program.write_text(f'#!/bin/sh\nPYTHONPATH={tests} exec {sys.executable} -m support.pages.firefox "$@"\n')
    program.chmod(0o755)
    browser = await playwright.firefox.launch(channel="moz-firefox", executable_path=str(program))
    try:
        yield browser
    finally:
        await browser.close()


class _Relay:
    """Listens where playwright connects."""

    def __init__(self, port: str) -> None:
        self._port = port

    async def serve(self) -> int:
        """Begins, and returns the port."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self._connected)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return int(runner.addresses[0][1])

    async def _connected(self, request: web.Request) -> web.WebSocketResponse:
        near = web.WebSocketResponse(max_msg_size=0)
        await near.prepare(request)
        url = f"ws://127.0.0.1:{self._port}{request.path}"
        async with ClientSession() as session, session.ws_connect(url, max_msg_size=0) as far:
            back = asyncio.create_task(_hand_back(far, near))
            async for message in near:
                if message.type is WSMsgType.TEXT:
                    await _hand_on(message.data, far, near)
            back.cancel()
        return near


async def _hand_on(text: str, far: ClientWebSocketResponse, near: web.WebSocketResponse) -> None:
    command = json.loads(text)
    if command.get("method") == _MISSING_COMMAND:
        await near.send_json({"type": "success", "id": command["id"], "result": {}})
    else:
        await far.send_str(text)


async def _hand_back(far: ClientWebSocketResponse, near: web.WebSocketResponse) -> None:
    async for message in far:
        await near.send_str(message.data)
    await near.close()


async def main() -> int:
    """Starts Firefox and writes what it writes, with the port of the relay in the place of its own."""
    program = shutil.which(PROGRAM)
    if program is None:
        print(f"{PROGRAM} is not installed", file=sys.stderr)
        return 1
    process = await asyncio.create_subprocess_exec(program, *sys.argv[1:], stderr=asyncio.subprocess.PIPE)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, process.terminate)
    assert process.stderr is not None
    async for raw in process.stderr:
        line = raw.decode(errors="replace")
        if found := _LISTENS.search(line):
            line = f"{found[1]}{await _Relay(found[2]).serve()}\n"
        sys.stderr.write(line)
        sys.stderr.flush()
    return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
