"""Which requests of browsers are answered."""

from __future__ import annotations

import pytest
from support.services.gateway import need_http

need_http()

from resolute_gateway.web.browser_safety import BrowserPolicy  # noqa: E402 - skipped where HTTP cannot be served

PAGE = "https://page.example"
POLICY = BrowserPolicy(hosts={"known.example"}, origins={PAGE})


@pytest.mark.parametrize(
    "host",
    ["localhost:1", "127.0.0.1:1", "[::1]:1", "a.localhost", "10.0.0.7", "known.example", "KNOWN.example:80"],
)
def test_known_names_are_answered(host: str) -> None:
    assert POLICY.refusal("POST", {"host": host}) is None


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "a.known.example", "[::1", ""],
)
def test_a_name_that_somebody_else_controls_is_not_answered(host: str) -> None:
    for method in ("GET", "POST"):
        refusal = POLICY.refusal(method, {"host": host})
        assert refusal is not None
        assert (refusal.status_code, b"RESOLUTE_HTTP_HOSTS" in refusal.body) == (421, True)


@pytest.mark.parametrize("origin", ["http://localhost:80", "https://LOCALHOST:80", PAGE])
def test_pages_of_the_same_origin_and_listed_ones_may_call(origin: str) -> None:
    assert POLICY.refusal("POST", {"host": "localhost:80", "origin": origin}) is None


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://localhost:1",
        "https://evil.example",
        "https://page.example.evil.example",
        PAGE + ":1",
        "",
    ],
)
def test_pages_of_other_origins_may_not(origin: str) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        refusal = POLICY.refusal(method, {"host": "localhost:80", "origin": origin})
        assert refusal is not None
        assert refusal.status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_a_browser_marks_as_foreign_is_refused_without_an_origin_too(site: str) -> None:
    assert POLICY.refusal("POST", {"host": "localhost", "sec-fetch-site": site}) is not None
    # Following a link is no call.
    assert POLICY.refusal("GET", {"host": "localhost", "sec-fetch-site": site}) is None
    assert POLICY.refusal("POST", {"host": "localhost", "sec-fetch-site": "same-origin"}) is None
