"""Media as browsers get them: typed by the service alone, in a sandbox, cached by digest, never as a page."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from support.services.gateway import gateway, need_http
from support.services.stand_ins.scripted_grpc import scripted_grpc

from resolute.api.checkpoints.v1 import media_pb2
from resolute.api.checkpoints.v1 import media_service_pb2 as api

need_http()

GET = "/resolute.api.checkpoints.v1.MediaService/GetMedia"
TRIAL = "5b8f2b1e-0000-4000-8000-000000000001"
ATTACK = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>"


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


def holding(content_type: str, content: bytes = ATTACK) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def answer(data: bytes, context: Any) -> bytes:
        request = api.GetMediaRequest.FromString(data)
        assert (request.trial_id, request.media_id) == (TRIAL, 7)
        metadata = dict(context.invocation_metadata())
        assert metadata["authorization"] == "Bearer of ada"
        digest = hashlib.sha256(content).hexdigest()
        found = media_pb2.Media(media_id=7, content_type=content_type, content=content, digest=digest)
        return api.GetMediaResponse(media=found).SerializeToString()

    return answer


async def fetch(http: Any, path: str = f"/media/{TRIAL}/7", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await http.request("GET", path, headers={"authorization": "Bearer of ada", **named})


@pytest.mark.parametrize(
    ("content_type", "served", "shown"),
    [
        ("image/png", "image/png", True),
        ("audio/wav", "audio/wav", True),
        ("text/plain", "application/octet-stream", False),
        ("application/json", "application/octet-stream", False),
        # A service that were wrong about these would still not make a browser run them.
        ("image/svg+xml", "application/octet-stream", False),
        ("text/html", "application/octet-stream", False),
        ("image/png\r\nx: y", "application/octet-stream", False),
    ],
)
def test_only_pictures_and_sounds_are_shown_and_nothing_runs(
    content_type: str, served: str, shown: bool
) -> None:
    async def scenario() -> None:
        async with scripted_grpc(unary={GET: holding(content_type)}) as address, gateway(address) as http:
            answer = await fetch(http)
        assert (answer.status, answer.data) == (200, ATTACK)
        assert answer.headers["content-type"] == served
        disposition = "inline" if shown else 'attachment; filename="7"'
        assert answer.headers["content-disposition"] == disposition
        assert answer.headers["content-security-policy"] == (
            "sandbox; default-src 'none'; frame-ancestors 'none'"
        )
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"

    run(scenario)


def test_a_browser_that_has_it_gets_it_no_second_time() -> None:
    async def scenario() -> None:
        async with scripted_grpc(unary={GET: holding("image/png")}) as address, gateway(address) as http:
            first = await fetch(http)
            assert first.headers["etag"] == f'"{hashlib.sha256(ATTACK).hexdigest()}"'
            assert first.headers["cache-control"] == "private, max-age=3600, immutable"
            again = await fetch(http, if_none_match=first.headers["etag"])
            assert (again.status, again.data) == (304, b"")
            assert (await fetch(http, if_none_match='"other"')).status == 200

    run(scenario)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, 401),
        (grpc.StatusCode.PERMISSION_DENIED, 403),
        (grpc.StatusCode.NOT_FOUND, 404),
        (grpc.StatusCode.DATA_LOSS, 410),
        (grpc.StatusCode.INTERNAL, 503),
    ],
)
def test_what_the_service_refuses_is_refused(code: grpc.StatusCode, status: int) -> None:
    async def refuse(data: bytes, context: Any) -> bytes:
        await context.abort(code, "no")
        return b""

    async def scenario() -> None:
        async with scripted_grpc(unary={GET: refuse}) as address, gateway(address) as http:
            answer = await fetch(http)
            assert answer.status == status
            assert "max-age" not in answer.headers["cache-control"]
            for path in (f"/media/{TRIAL}/x", f"/media/{TRIAL}/{2**63}", f"/media/{TRIAL}/-1"):
                assert (await fetch(http, path)).status == 404

    run(scenario)
