"""Whose turn it is when many want large answers in JSON."""

from __future__ import annotations

import asyncio

import jwt
import pytest

from resolute.api.experiments.v1.access_service_pb2 import GetCurrentUserResponse
from resolute_gateway.rpc import json_conversion
from resolute_gateway.rpc.json_conversion import JsonConversion
from resolute_gateway.rpc.sign_in import claimed_caller
from resolute_gateway.web.callers import current_caller

KIND = GetCurrentUserResponse.DESCRIPTOR


def test_who_wants_many_large_answers_lets_others_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_conversion, "INLINE_BYTES", 0)
    large = GetCurrentUserResponse(service_name="x" * 100).SerializeToString()
    written: list[str] = []

    async def body() -> None:
        conversion = JsonConversion()

        async def write(caller: str) -> None:
            await conversion.to_json(large, KIND, caller=caller)
            written.append(caller)

        try:
            many = [asyncio.create_task(write("eve")) for _ in range(20)]
            await asyncio.sleep(0)
            await write("ada")
            assert written.count("eve") <= 2
            await asyncio.gather(*many)
        finally:
            await conversion.close()

    asyncio.run(asyncio.wait_for(body(), 60))
    assert written.count("eve") == 20


def test_a_caller_is_whom_the_token_speaks_for_from_whatever_address() -> None:
    def named(user: str, number: int) -> str:
        token = jwt.encode({"sub": user, "jti": number}, "k" * 32)
        return claimed_caller([("authorization", f"Bearer {token}")])

    assert named("eve", 1) == named("eve", 2) == "eve"
    current_caller.set("ipv4:10.0.0.7:5123")
    for header in ("", "Bearer ", "Bearer a.b.c", "Basic x"):
        assert claimed_caller([("authorization", header)]) == "10.0.0.7"
    assert claimed_caller([]) == "10.0.0.7"
