"""Clients of Determined's REST API are told where its calls are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.services.gateway import gateway, need_http

need_http()

PAGE = Path(__file__).parents[4] / "docs/gateway.md"
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/experiments"),
        ("POST", "/api/v1/auth/login"),
        ("PATCH", "/api/v1/experiments/1"),
        ("GET", "/docs/rest-api/"),
        ("GET", "/docs/rest-api"),
        ("GET", "/info"),
        ("POST", "/login"),
        ("GET", "/prom/det-state-metrics"),
        ("GET", "/resources/allocation/raw"),
    ],
)
def test_its_paths_name_the_section_that_maps_its_calls(method: str, path: str) -> None:
    async def scenario() -> None:
        async with gateway(NOWHERE) as http:
            told = await http.request(method, path, headers={"content-type": "application/json"}, body=b"{}")
            assert told.status == 410
            # Where our clients look for the message, and where those of Determined do.
            assert "docs/gateway.md" in told.json()["message"]
            assert told.json()["error"]["error"] == told.json()["message"]
            shown = await http.request(method, path, headers={"accept": "text/html"})
            assert (shown.status, shown.headers["content-type"]) == (410, "text/plain; charset=utf-8")
            assert "docs/gateway.md" in shown.data.decode()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert "### From Determined's REST API" in PAGE.read_text()


@pytest.mark.parametrize("path", ["/agents", "/tasks", "/users/me", "/experiment-list", "/nowhere"])
def test_paths_of_early_releases_are_not_there_and_name_the_section_too(path: str) -> None:
    async def scenario() -> None:
        async with gateway(NOWHERE) as http:
            refused = await http.request("GET", path)
            assert refused.status == 404
            assert "docs/gateway.md maps those of Determined's REST API" in refused.json()["message"]

    asyncio.run(asyncio.wait_for(scenario(), 60))
