"""A real OpenID provider on loopback, and a person with a browser at it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
from support.backends import missing
from support.waiting import wait_until

INSTALLED = Path(__file__).parents[3] / ".cache" / "oidc-provider"
CLIENT = "resolute"
_LISTENING = re.compile(r"^listening at (\S+)\n", re.MULTILINE)
_PROGRAM = Path(__file__).with_name("openid_provider.mjs")


@dataclass(frozen=True)
class Provider:
    """A provider that runs."""

    issuer: str

    def confirm(self, url: str, *, login: str) -> str:
        """Does what a person does in a browser: opens a page, signs in, agrees; returns the last page."""
        page, _ = self._walk(url, login)
        return page

    def authorize(self, url: str, *, login: str) -> str:
        """Does the same; returns the URL outside of the provider to which the browser is led."""
        page, target = self._walk(url, login)
        assert target, f"the provider does not lead the browser back: {page}"
        return target

    def _walk(self, url: str, login: str) -> tuple[str, str]:
        with httpx2.Client(timeout=60) as browser:
            page = browser.get(url)
            for _ in range(30):
                form = _Form(page.text)
                if page.has_redirect_location:
                    target = urljoin(str(page.url), page.headers["location"])
                    if not target.startswith(f"{self.issuer}/"):
                        return "", target
                    page = browser.get(target)
                elif form.action is not None:
                    filled = {"login": login, "password": "any", **form.fields}
                    fields = {name: filled.get(name, "") for name in form.names}
                    page = browser.post(urljoin(str(page.url), form.action), data=fields)
                else:
                    return str(page.text), ""
        raise AssertionError(f"the provider asks on and on: {page.text}")


@contextmanager
def openid_provider(accounts: Mapping[str, Mapping[str, Any]]) -> Iterator[Provider]:
    """Serves a provider until the block ends; skips the test where it is not installed.

    Args:
        accounts: Claims by subject.
    """
    node = shutil.which("node")
    if node is None or not (INSTALLED / "node_modules/oidc-provider/package.json").is_file():
        missing("oidc-provider is not installed: `make oidc-provider` installs it with npm")
    # A file takes whatever it says; a pipe that nobody reads would stop it.
    with tempfile.TemporaryDirectory() as directory, Path(directory, "output").open("w") as output:
        process = subprocess.Popen(
            [node, str(_PROGRAM), str(INSTALLED), json.dumps(accounts)], stdout=output, stderr=output
        )
        try:
            yield Provider(_issuer(process, Path(output.name)))
        finally:
            process.kill()
            process.wait()


def _issuer(process: subprocess.Popen[bytes], output: Path) -> str:
    """Waits until the provider says where it listens."""

    def find() -> str:
        said = output.read_text()
        assert process.poll() is None, f"the provider did not start: {said}"
        found = _LISTENING.search(said)
        return found[1] if found else ""

    return wait_until(find, what="the address of the provider", seconds=60)


class _Form(HTMLParser):
    """The first form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.names: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None:
            self.action, self._inside = given.get("action", ""), True
        elif tag == "input" and self._inside and "name" in given:
            self.names.append(given["name"])
            if given.get("type") == "hidden" or given.get("value"):
                self.fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "form"
