"""WebKit's MiniBrowser of Debian, driven by WebDriver on a display that nobody sees."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.backends import missing
from support.ports import free_port

PATIENCE_SECONDS = 60.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key under which WebDriver names elements."""
_DISPLAY = ("-screen", "0", "1440x900x24", "-nolisten", "tcp")


def mini_browser() -> Path | None:
    """The browser, where it, its driver and a display are installed."""
    found = sorted(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"))
    return found[-1] if found and shutil.which("WebKitWebDriver") and shutil.which("Xvfb") else None


class WebKit:
    """A window of the browser.

    Args:
        url: Its session, at the driver.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def call(self, method: str, path: str, **body: Any) -> Any:
        """Calls the driver, and returns the value of its answer."""
        return call(method, f"{self._url}{path}", **body)

    def go(self, url: str) -> None:
        """Opens an address."""
        self.call("POST", "/url", url=url)

    def run(self, script: str) -> Any:
        """Runs the body of an asynchronous function, and returns what it gives to ``done``."""
        body = f"const done = arguments[arguments.length - 1]; {script}"
        return self.call("POST", "/execute/async", script=body, args=[])

    def find(self, xpath: str) -> str:
        """Waits for an element, and returns the driver's name of it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self.call("POST", "/elements", using="xpath", value=xpath)
            if found:
                return str(found[0][_ELEMENT])
            assert time.monotonic() < deadline, f"waited in vain for {xpath}"
            time.sleep(0.05)

    def click(self, xpath: str) -> None:
        """Clicks an element, as a person does."""
        self.call("POST", f"/element/{self.find(xpath)}/click")

    def write(self, xpath: str, text: str) -> None:
        """Types into an element."""
        self.call("POST", f"/element/{self.find(xpath)}/value", text=text)


def call(method: str, url: str, **body: Any) -> Any:
    """One call of WebDriver."""
    request = urllib.request.Request(
        url,
        method=method,
        data=json.dumps(body).encode() if method == "POST" else None,
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from error


@contextmanager
def webkit() -> Iterator[WebKit]:
    """A window until the block ends; skips the test where WebKit is not here."""
    browser = mini_browser()
    if browser is None:
        missing("WebKit is not here: `apt-get install webkit2gtk-driver xvfb` installs it")
    with contextlib.ExitStack() as stack:
        shown = stack.enter_context(_process("Xvfb", "-displayfd", "1", *_DISPLAY))
        assert shown.stdout is not None
        display = f":{shown.stdout.readline().strip()}"
        port = free_port()
        stack.enter_context(_process("env", f"DISPLAY={display}", "WebKitWebDriver", f"--port={port}"))
        root = f"http://127.0.0.1:{port}"
        _until_it_listens(root)
        options = {"binary": str(browser), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        session = call("POST", f"{root}/session", capabilities=wanted)["sessionId"]
        window = WebKit(f"{root}/session/{session}")
        window.call("POST", "/timeouts", script=int(1000 * PATIENCE_SECONDS))
        try:
            yield window
        finally:
            window.call("DELETE", "")


@contextmanager
def _process(*command: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _until_it_listens(root: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if call("GET", f"{root}/status")["ready"]:
                return
        except urllib.error.URLError:
            assert time.monotonic() < deadline, "WebKit's driver does not answer"
        time.sleep(0.05)
