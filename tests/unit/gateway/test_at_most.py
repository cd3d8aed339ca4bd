"""Requests of one kind that are answered at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import Message, Receive, Scope, Send
from support.waiting import wait_until_async

from resolute_gateway.web.at_most import AtMost


def test_one_more_waits_until_another_was_answered_or_is_refused_after_a_while() -> None:
    async def scenario() -> None:
        begun: asyncio.Queue[str] = asyncio.Queue()
        ends = {"/first": asyncio.Event(), "/second": asyncio.Event()}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            begun.put_nowait(scope["path"])
            await ends[scope["path"]].wait()
            raise OSError("the client went away")

        patient, hasty = (AtMost(app, most=1, what="things", caller=str, wait=wait) for wait in (60, 0.01))

        def ask(path: str, *, of: AtMost, answer: list[Message] | None = None) -> asyncio.Task[None]:
            async def receive() -> Message:
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                (answer if answer is not None else []).append(message)

            scope: dict[str, Any] = {"type": "http", "path": path, "method": "GET", "headers": []}
            return asyncio.create_task(of(scope, receive, send))

        tasks = [ask("/first", of=patient)]
        assert await begun.get() == "/first"
        tasks.append(ask("/second", of=patient))
        ends["/first"].set()
        assert await begun.get() == "/second"
        ends["/second"].set()
        failures = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(failure) for failure in failures] == [OSError, OSError]

        ends["/first"].clear()
        holder = ask("/first", of=hasty)
        await begun.get()
        refused: list[Message] = []
        await ask("/second", of=hasty, answer=refused)
        assert refused[0]["status"] == 429
        assert b"at most 1 things at once" in refused[1]["body"]
        holder.cancel()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_who_reads_nothing_of_many_answers_keeps_others_from_none() -> None:
    async def scenario() -> None:
        begun: list[str] = []
        end = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            begun.append(scope["path"])
            await end.wait()

        bounded = AtMost(app, most=8, what="things", caller=lambda scope: str(scope["path"]), wait=0.05)

        def ask(caller: str, answer: list[Message]) -> asyncio.Task[None]:
            async def receive() -> Message:
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                answer.append(message)

            scope: dict[str, Any] = {"type": "http", "path": caller, "method": "GET", "headers": []}
            return asyncio.create_task(bounded(scope, receive, send))

        answers: list[Message] = []
        asked = [ask("eve", answers) for _ in range(20)]
        await wait_until_async(lambda: sum("status" in answer for answer in answers) == 18)
        assert {answer["status"] for answer in answers if "status" in answer} == {429}
        assert b"at most 2 to one caller" in answers[1]["body"]
        asked += [ask("ada", answers)]
        await wait_until_async(lambda: begun == ["eve", "eve", "ada"])
        end.set()
        await asyncio.gather(*asked)

    asyncio.run(asyncio.wait_for(scenario(), 60))
