"""Every call gives clients of other languages what it gives without them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from clients.programs import CONFORMANCE
from faults.fuzz.campaign import end_processes
from faults.fuzz.world import Caller, make_world
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from support.calls.conformance import compare
from support.calls.contract_methods import path
from support.calls.outcomes import Outcome, answered, ended, failed
from support.services.gateway import gateway
from support.services.in_process import serving

from resolute_embedded.blueprints import BLUEPRINTS

_LONGEST_LINE = 64 << 20


@dataclass(frozen=True)
class ByProgram:
    """Calls by a program that reads them as lines of JSON."""

    process: asyncio.subprocess.Process
    streams_requests: bool

    async def __call__(self, method: MethodDescriptor, request: Message, token: str) -> Outcome:
        """Makes the call."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        encoded = base64.b64encode(request.SerializeToString()).decode()
        call = {"method": path(method), "token": token, "request": encoded}
        self.process.stdin.write(json.dumps(call).encode() + b"\n")
        await self.process.stdin.drain()
        line = await asyncio.wait_for(self.process.stdout.readline(), 60)
        assert line, f"the program ended at {method.full_name}"
        outcome: dict[str, Any] = json.loads(line)
        if outcome.get("ended"):
            return ended()
        if outcome["code"] == "ok":
            return answered(method, base64.b64decode(outcome["answer"] or ""))
        details = [(one["type"], base64.b64decode(one["value"])) for one in outcome["details"]]
        return failed(outcome["code"], outcome["message"], details)


@asynccontextmanager
async def running(command: Sequence[str], url: str, *, streams_requests: bool) -> AsyncIterator[ByProgram]:
    """Runs a program until the block ends."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "RESOLUTE_URL": url},
        limit=_LONGEST_LINE,
    )
    try:
        yield ByProgram(process, streams_requests)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CONFORMANCE)
def test_every_call_ends_for_a_client_as_it_does_without(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESOLUTE_SLOTS", "1")
    program = CONFORMANCE[name]
    program.need()

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            services = await stack.enter_async_context(serving(BLUEPRINTS, tmp_path))
            http = await stack.enter_async_context(gateway(services.address))
            url = f"http://{services.address}" if name.endswith("gRPC") else f"http://127.0.0.1:{http.port}"
            caller = Caller(services)
            try:
                world = await make_world(caller, tmp_path, random.Random(1))
                client = await stack.enter_async_context(
                    running(program.command, url, streams_requests=not name.endswith("HTTP"))
                )
                comparison = await compare(caller, world, {name: client})
            finally:
                await caller.channel.close()
                end_processes(tmp_path)
        comparison.check({name: client})

    asyncio.run(scenario())
