"""What a service does with refusals that the experiments service does not take."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from support.clocks import ManualClock

from resolute.errors import InvalidArgumentError, ResoluteError, UnavailableError
from resolute_serving.auth.refusals import MOST_KINDS, Refusals
from resolute_serving.server import refusal_reports
from resolute_serving.server.channels.peers import Peers
from resolute_serving.server.refusal_reports import RefusalReports


@pytest.mark.parametrize(("error", "kept"), [(UnavailableError, 1), (InvalidArgumentError, 0)])
def test_a_report_is_sent_again_unless_its_content_was_refused(
    monkeypatch: pytest.MonkeyPatch, error: type[ResoluteError], kept: int
) -> None:
    async def refuse(_: Any) -> None:
        raise error("refused")

    monkeypatch.setattr(
        refusal_reports, "AccessServiceStub", lambda _: SimpleNamespace(RecordRefusals=refuse)
    )
    refusals = Refusals(ManualClock())
    refusals.note("permission_denied", "call A/B", peer="::1")

    async def scenario() -> None:
        peers = Peers({"*": "127.0.0.1:1"}, token=lambda: "")
        await RefusalReports(refusals, peers=peers).send()
        await peers.close()

    asyncio.run(scenario())
    assert len(refusals.take()) == kept


def test_more_kinds_than_one_message_holds_are_sent_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []

    async def record(request: Any) -> None:
        sent.append(len(request.refusals))

    monkeypatch.setattr(
        refusal_reports, "AccessServiceStub", lambda _: SimpleNamespace(RecordRefusals=record)
    )
    refusals = Refusals(ManualClock())
    for number in range(MOST_KINDS + 50):
        refusals.note("permission_denied", f"call A/{number}", peer="::1")

    async def scenario() -> None:
        peers = Peers({"*": "127.0.0.1:1"}, token=lambda: "")
        await RefusalReports(refusals, peers=peers).send()
        await peers.close()

    asyncio.run(scenario())
    # All kinds that are held, and one of those that are counted together.
    assert sent == [MOST_KINDS, 1]
