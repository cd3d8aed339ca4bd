"""The gateway serves the built site, and a browser runs only the scripts that are in it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from pathlib import Path

import pytest
from support.services.gateway import gateway, need_http

from resolute.errors import InvalidArgumentError
from resolute_gateway.settings import HttpSettings

need_http()

SCRIPT = b"start(1 < 2)"
PAGE = (
    b'<html><script src="assets/site.js"></script><script type="application/json">{}</script>'
    b'<script>%s</script><style>p {}</style><td style="text-align: center;">x</td></html>' % SCRIPT
)  # fmt: skip
NOWHERE = "127.0.0.1:1"


def hashed(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of a page and a script, beside a file that is not part of it."""
    folder = tmp_path / "html"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_bytes(PAGE)
    (folder / "assets/site.js").write_text("start()")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    return folder


def test_pages_are_served_with_a_policy_of_their_own(site: Path) -> None:
    async def scenario() -> None:
        async with gateway(NOWHERE, docs=site) as http:
            moved = await http.request("GET", "/docs")
            assert (moved.status, moved.headers["location"]) == (308, "docs/")
            page = await http.request("GET", "/docs/")
            assert (page.status, page.data) == (200, PAGE)
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            (policy,) = page.headers.getlist("content-security-policy")
            rules = dict(rule.partition(" ")[::2] for rule in policy.split("; "))
            assert rules["default-src"] == "'none'"
            assert rules["script-src"] == f"'self' {hashed(SCRIPT)}"
            attribute = hashed(b"text-align: center;")
            assert rules["style-src"] == f"'self' {hashed(b'p {}')} 'unsafe-hashes' {attribute}"
            script = await http.request("GET", "/docs/assets/site.js")
            assert script.data == b"start()"
            assert script.headers["x-content-type-options"] == "nosniff"
            for path in ("/docs/link", "/docs/../secret", "/docs/%2e%2e/secret", "/docs/none.html", "/docsx"):
                assert (await http.request("GET", path)).status == 404, path

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_page_that_is_gone_is_not_found_and_a_failed_read_is_repeated(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> bytes:
        raise OSError(f"{path} is on a disk that is away")

    async def scenario() -> None:
        async with gateway(NOWHERE, docs=site) as http:
            with monkeypatch.context() as away:
                away.setattr(Path, "read_bytes", fail)
                assert (await http.request("GET", "/docs/")).status == 500
            assert (await http.request("GET", "/docs/")).status == 200
            (site / "assets/site.js").unlink()
            assert (await http.request("GET", "/docs/assets/site.js")).status == 404

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_directory_without_a_site_is_refused_when_the_gateway_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"RESOLUTE_DOCS_DIR names .* there is no index"):
        HttpSettings.from_environment({"RESOLUTE_DOCS_DIR": str(tmp_path)}, cluster_id="", grpc_port=1)


def test_without_a_site_there_are_no_pages() -> None:
    async def scenario() -> None:
        async with gateway(NOWHERE) as http:
            assert (await http.request("GET", "/docs/")).status == 404

    asyncio.run(asyncio.wait_for(scenario(), 60))
