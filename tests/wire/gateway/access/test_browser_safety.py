"""Pages of other people cannot use a browser against the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from support.services.gateway import GatewayClient, gateway
from support.services.stand_ins.scripted_grpc import scripted_grpc

CLUSTER = "/resolute.api.experiments.v1.ClusterService/GetCluster"
PAGE = "https://page.example"
JSON = {"content-type": "application/json"}


def run(scenario: Callable[[GatewayClient, list[bytes]], Awaitable[None]], **settings: Any) -> None:
    """Runs a scenario on a gateway whose service notes the calls that reach it."""

    async def serve() -> None:
        made: list[bytes] = []

        async def answer(data: bytes, context: Any) -> bytes:
            made.append(data)
            return b""

        async with scripted_grpc(unary={CLUSTER: answer}) as address, gateway(address, **settings) as http:
            await scenario(http, made)

    asyncio.run(asyncio.wait_for(serve(), 60))


def test_foreign_names_and_pages_reach_no_service_and_learn_nothing() -> None:
    async def scenario(http: GatewayClient, made: list[bytes]) -> None:
        for headers, status in (
            ({"host": "evil.example"}, 421),
            ({"origin": "https://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({"sec-fetch-site": "cross-site"}, 403),
        ):
            for method in ("POST", "OPTIONS"):
                refused = await http.request(method, CLUSTER, body=b"{}", headers={**JSON, **headers})
                assert (refused.status, made) == (status, [])
                assert not [name for name in refused.headers if name.lower().startswith("access-control")]
        page = await http.request("GET", "/.well-known/resolute.json", headers={"host": "evil.example"})
        assert page.status == 421

    run(scenario)


def test_the_own_page_may_call() -> None:
    async def scenario(http: GatewayClient, made: list[bytes]) -> None:
        own = f"http://127.0.0.1:{http.port}"
        answered = await http.request("POST", CLUSTER, body=b"{}", headers={**JSON, "origin": own})
        assert (answered.status, len(made)) == (200, 1)
        assert "access-control-allow-origin" not in answered.headers

    run(scenario)


def test_a_page_that_is_listed_may_call() -> None:
    async def scenario(http: GatewayClient, made: list[bytes]) -> None:
        wanted = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
        asked = await http.request("OPTIONS", CLUSTER, headers={"origin": PAGE, **wanted})
        assert (asked.status, made) == (200, [])
        assert asked.headers["access-control-allow-origin"] == PAGE
        assert asked.headers["access-control-allow-methods"] == "POST"
        assert "access-control-allow-credentials" not in asked.headers
        answered = await http.request("POST", CLUSTER, body=b"{}", headers={**JSON, "origin": PAGE})
        assert (answered.status, len(made)) == (200, 1)
        assert answered.headers["access-control-allow-origin"] == PAGE
        assert "Origin" in answered.headers["vary"]

    run(scenario, origins=frozenset({PAGE}))


def test_calls_are_made_by_post_alone_and_not_by_forms() -> None:
    # A page can make a browser send a GET or a form with its cookies, and needs no permission for it.
    async def scenario(http: GatewayClient, made: list[bytes]) -> None:
        path = f"{CLUSTER}?encoding=json&connect=v1&message=%7B%7D"
        for method, status in (("GET", 404), ("HEAD", 404), ("PUT", 405), ("DELETE", 405)):
            refused = await http.request(method, path, headers={"cookie": "session=a"})
            assert refused.status == status
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            refused = await http.request("POST", CLUSTER, body=b"{}", headers={"content-type": kind})
            assert refused.status == 415
        assert made == []

    run(scenario)


def test_every_answer_forbids_scripts_and_frames_and_no_cache_keeps_it() -> None:
    async def scenario(http: GatewayClient, made: list[bytes]) -> None:
        answers = [
            await http.request("GET", path) for path in ("/", "/.well-known/resolute.json", "/nothing")
        ]
        answers.append(await http.request("POST", CLUSTER, body=b"{}", headers=JSON))
        answers.append(
            await http.request("POST", CLUSTER, body=b"{}", headers={**JSON, "host": "evil.example"})
        )
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"

    run(scenario)
